"""Deltas of every drive against the basis."""

from drivelab.analysis.deltas import deltas_table
from drivelab.errors import reported
from drivelab.tables import io

with reported(snakemake.log[0]):
    summary = io.read(snakemake.input.summary, "summary")
    io.write(deltas_table(summary, snakemake.params.basis), snakemake.output.deltas, "deltas")
