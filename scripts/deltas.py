"""Compute the deltas of every drive against the basis, with verdicts, and those of models."""

from pathlib import Path

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.analysis.deltas.models import model_deltas
from drivelab.collect.conditions import start_times
from drivelab.core.errors import reported
from drivelab.tables import io

with reported(snakemake.log[0]):
    summary = io.read(snakemake.input.summary, "summary")
    if not snakemake.params.basis_is_there:  # another host still has to measure it
        summary = summary.head(0)
    terms, basis = snakemake.params.comparison, snakemake.params.basis
    differences = io.read(snakemake.input.differences, "differences")
    started = start_times(map(Path, snakemake.input.manifests))
    table = deltas_table(summary, basis, **terms, differences=differences, started=started)
    io.write(table, snakemake.output.deltas, "deltas")
    terms = {name: terms[name] for name in ("margin_pct", "confidence_pct")}
    models = model_deltas(summary, snakemake.params.models, basis, **terms)
    io.write(models, snakemake.output.model_deltas, "model_deltas")
