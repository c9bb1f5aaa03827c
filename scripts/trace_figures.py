"""The figures of one trace."""

from pathlib import Path

from drivelab.errors import reported
from drivelab.figures import trace_sheet
from drivelab.tables import io

with reported(snakemake.log[0]):
    tables = {name: io.read(path, name) for name, path in snakemake.input.items()}
    stems = {Path(path).stem: Path(path).with_suffix("") for path in snakemake.output}
    trace_sheet.draw(stems, tables, png=any(path.endswith(".png") for path in snakemake.output))
