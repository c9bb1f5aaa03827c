"""Compute the tables of a study: what counts, the summary, and the comparison with the basis."""

from pathlib import Path

from drivelab.analysis.study_tables import BIN_COLUMNS, COUNTED, study_tables
from drivelab.core.errors import reported
from drivelab.tables import io

with reported(snakemake.log[0]):
    recordings = [Path(manifest).parent for manifest in snakemake.input.manifests]
    tables = {name: io.read(snakemake.input[name], name) for name in COUNTED}
    soak_bins = io.read_part(snakemake.input.latency_bins, "latency_bins", BIN_COLUMNS, ("kind", "soak"))
    for name, table in study_tables(recordings, tables, soak_bins, snakemake.params.study).items():
        io.write(table, snakemake.output[name], name)
