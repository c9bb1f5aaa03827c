"""Draw the figures of one trace."""

from pathlib import Path

from drivelab.core.errors import reported
from drivelab.figures.base import kept, trace_sheet
from drivelab.tables import io

with reported(snakemake.log[0]):
    files = [Path(path) for path in snakemake.output]
    made_from = kept.origins(snakemake.params.code, dict(snakemake.input.items()), trace_sheet.tables_of)
    stems = kept.not_right(files, made_from)
    tables = {name: io.read(path, name) for name, path in snakemake.input.items()}
    trace_sheet.draw(stems, tables, png=any(file.suffix == ".png" for file in files), made_from=made_from)
