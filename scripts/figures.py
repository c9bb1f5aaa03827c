"""Draw the figures of a drive's recordings of one measurement, a folder for each recording."""

from pathlib import Path

from drivelab.core.files import whole_folder
from drivelab.core.jobs import reported
from drivelab.figures.drawing import draw_recording
from drivelab.workflow import facts

with reported(snakemake.log[0]), whole_folder(Path(snakemake.output[0])) as folder:
    png = facts.read(snakemake.input.facts)["png"]
    results, place = Path(snakemake.output[0]).parents[2], snakemake.wildcards
    for run in snakemake.params.runs:
        recording = results / "recordings" / place.drive / place.measurement / run
        draw_recording(recording, folder / run, png=png)
