"""Write the tables of trace statistics."""

from pathlib import Path

from drivelab.core.errors import reported
from drivelab.tables import io
from drivelab.trace.statistics.count import count

with reported(snakemake.log[0]):
    for name, table in count(Path(snakemake.input.trace), snakemake.wildcards.trace).items():
        io.write(table, snakemake.output[name], name)
