"""Summarise each drive, measurement and cell in one value, with spread and verdict, and say what makes values vary."""

from drivelab.analysis.deltas.variation import variation_table
from drivelab.analysis.exclusions import counted
from drivelab.analysis.values.scores import with_scores
from drivelab.analysis.values.summary import pooled, values_by_recording
from drivelab.core.errors import reported
from drivelab.tables import io

with reported(snakemake.log[0]):
    names = ("cells", "steady_state", "replays", "replay_passes", "application_runs", "load_rates")
    exclusions = io.read(snakemake.input.exclusions, "exclusions")
    tables = {name: counted(io.read(snakemake.input[name], name), exclusions) for name in names}
    columns = ("recording", "step", "round", "part", "latency_ns", "count")
    values = values_by_recording(
        **tables,
        rse_threshold_pct=snakemake.params.rse_threshold_pct,
        soak_bins=io.read_part(snakemake.input.latency_bins, "latency_bins", columns, ("kind", "soak")),
        scores=snakemake.params.scores,
    )
    summary = with_scores(values, snakemake.params.score_sets, snakemake.params.basis, pooled(values))
    io.write(summary, snakemake.output.summary, "summary")
    io.write(variation_table(values, snakemake.params.models), snakemake.output.variation, "variation")
