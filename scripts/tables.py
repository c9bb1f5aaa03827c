"""Write the tables of one recording."""

from pathlib import Path

from drivelab.analysis.taint import Limits
from drivelab.errors import reported
from drivelab.tables import io
from drivelab.tables.collect import collect

with reported(snakemake.log[0]):
    limits = Limits.from_mapping(snakemake.params.limits)
    for name, table in collect(Path(snakemake.input.manifest).parent, snakemake.params.reduced, limits).items():
        io.write(table, snakemake.output[name], name)
