"""Write the tables of one recording."""

from pathlib import Path

from drivelab.collect.collect import collect
from drivelab.core.errors import reported
from drivelab.criteria.taint import Limits
from drivelab.tables import io

with reported(snakemake.log[0]):
    limits = Limits.from_mapping(snakemake.params.limits)
    for name, table in collect(Path(snakemake.input.manifest).parent, snakemake.params.reduced, limits).items():
        io.write(table, snakemake.output[name], name)
