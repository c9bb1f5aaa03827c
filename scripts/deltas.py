"""Deltas of every drive against the basis."""

from drivelab.analysis.deltas import deltas_table
from drivelab.tables import io

summary = io.read(snakemake.input.summary, "summary")
io.write(deltas_table(summary, snakemake.params.basis), snakemake.output.deltas, "deltas")
