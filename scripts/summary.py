"""Summarise each drive, measurement and cell in one value, with spread and verdict."""

from drivelab.analysis.exclusions import counted
from drivelab.analysis.values.summary import summary_table
from drivelab.core.errors import reported
from drivelab.tables import io

with reported(snakemake.log[0]):
    names = ("cells", "steady_state", "replays", "replay_passes", "application_runs")
    exclusions = io.read(snakemake.input.exclusions, "exclusions")
    tables = {name: counted(io.read(snakemake.input[name], name), exclusions) for name in names}
    columns = ("recording", "step", "round", "direction", "latency_ns", "count")
    table = summary_table(
        **tables,
        rse_threshold_pct=snakemake.params.rse_threshold_pct,
        soak_bins=io.read_part(snakemake.input.latency_bins, "latency_bins", columns, ("kind", "soak")),
        scores=snakemake.params.scores,
    )
    io.write(table, snakemake.output.summary, "summary")
