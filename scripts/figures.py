"""Draw the figures of a drive's recordings of one measurement, a folder for each recording."""

from pathlib import Path

from drivelab.core.files import whole_folder
from drivelab.core.jobs import reported
from drivelab.figures.drawing import draw_recording
from drivelab.recording.folders import recording_of
from drivelab.workflow import facts

with reported(snakemake.log[0]), whole_folder(Path(snakemake.output[0])) as folder:
    png, tables = facts.read(snakemake.input.facts)["png"], Path(snakemake.input.tables).parent
    for run in snakemake.params.runs:
        draw_recording(recording_of(tables / run), folder / run, png=png)
