"""Draw the figures that compare the drives, or the block sizes, of one measurement."""

from pathlib import Path

from drivelab.core.files import whole_folder
from drivelab.core.jobs import reported
from drivelab.figures.drawing import draw_comparison
from drivelab.workflow import facts

with reported(snakemake.log[0]), whole_folder(Path(snakemake.output[0])) as folder:
    study, name = facts.read(snakemake.input.facts), snakemake.wildcards.measurement
    tables = Path(snakemake.input.of_study[0]).parent
    recordings = [tables.with_name("recordings") / recording for recording in study["recordings"][name]]
    draw_comparison(recordings, tables, name, study["basis"], folder, png=study["png"])
