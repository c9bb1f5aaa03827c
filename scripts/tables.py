"""Tables of one recording."""

from pathlib import Path

from drivelab.tables import io
from drivelab.tables.collect import collect

for name, table in collect(Path(snakemake.input.manifest).parent, snakemake.params.reduced).items():
    io.write(table, snakemake.output[name], name)
