"""Draw the figures of one trace."""

from pathlib import Path

from drivelab.core.files import whole_folder
from drivelab.core.jobs import reported
from drivelab.figures.drawing import draw_trace
from drivelab.workflow import facts

with reported(snakemake.log[0]), whole_folder(Path(snakemake.output[0])) as folder:
    draw_trace(Path(snakemake.input.tables), folder, png=facts.read(snakemake.input.facts)["png"])
