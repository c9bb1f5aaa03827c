"""Compute the deltas of every drive against the basis, with verdicts."""

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.core.errors import reported
from drivelab.tables import io

with reported(snakemake.log[0]):
    summary = io.read(snakemake.input.summary, "summary")
    if not snakemake.params.basis_is_there:  # another host still has to measure it
        summary = summary.head(0)
    table = deltas_table(
        summary,
        snakemake.params.basis,
        **snakemake.params.comparison,
        differences=io.read(snakemake.input.differences, "differences"),
    )
    io.write(table, snakemake.output.deltas, "deltas")
