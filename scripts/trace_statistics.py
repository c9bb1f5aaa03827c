"""Tables and figures of what a trace holds."""

from pathlib import Path

from drivelab.errors import reported
from drivelab.figures import trace_sheet
from drivelab.tables import io
from drivelab.trace.statistics.count import count

with reported(snakemake.log[0]):
    tables = count(Path(snakemake.input.trace), snakemake.wildcards.trace)
    for name, table in tables.items():
        io.write(table, snakemake.output[name], name)
    figures = {Path(path).stem: Path(path).with_suffix("") for path in snakemake.output if path.endswith(".svg")}
    trace_sheet.draw(figures, tables)
