"""Deltas of every drive against the basis, and what can be said of them."""

from drivelab.analysis.deltas import deltas_table
from drivelab.errors import reported
from drivelab.tables import io

with reported(snakemake.log[0]):
    summary = io.read(snakemake.input.summary, "summary")
    if not snakemake.params.basis_is_there:  # it is still to be measured on another host
        summary = summary.head(0)
    table = deltas_table(
        summary,
        snakemake.params.basis,
        **snakemake.params.comparison,
        differences=io.read(snakemake.input.differences, "differences"),
    )
    io.write(table, snakemake.output.deltas, "deltas")
