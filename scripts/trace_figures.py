"""Draw the figures of one trace."""

from pathlib import Path

from drivelab.core.errors import reported
from drivelab.figures.base import trace_sheet
from drivelab.tables import io

with reported(snakemake.log[0]):
    files = [Path(path) for path in snakemake.output]
    tables = {name: io.read(path, name) for name, path in snakemake.input.items()}
    stems = {path.stem: path.with_suffix("") for path in files}
    trace_sheet.draw(stems, tables, png=any(file.suffix == ".png" for file in files))
