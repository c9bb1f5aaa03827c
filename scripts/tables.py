"""Write the tables of one recording."""

from pathlib import Path

from drivelab.analysis.values.recording_tables import found_in, recording_tables
from drivelab.core.errors import reported
from drivelab.criteria.taint import Limits
from drivelab.tables import io

with reported(snakemake.log[0]):
    recording, limits = Path(snakemake.input.manifest).parent, Limits.from_mapping(snakemake.params.limits)
    tables = recording_tables(recording, reduced=snakemake.params.reduced, limits=limits)
    for name, table in {**tables, **found_in(recording, tables)}.items():
        io.write(table, snakemake.output[name], name)
