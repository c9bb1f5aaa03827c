"""Compute the spread of values over a fleet's drives, and the drives that deviate."""

from pathlib import Path

from drivelab.analysis.fleet_parts import fleet_tables
from drivelab.core.errors import reported
from drivelab.tables import io
from drivelab.workflow.fleet import outcomes_of

with reported(snakemake.log[0]):
    outcomes = outcomes_of(map(Path, snakemake.input.outcomes))
    for name, table in fleet_tables(outcomes, snakemake.params.margin_pct).items():
        io.write(table, snakemake.output[name], name)
