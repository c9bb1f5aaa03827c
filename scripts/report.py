"""The report of a study, one self-contained HTML file."""

from pathlib import Path

from drivelab.errors import reported
from drivelab.report.study import write_report

NAMES = (
    "cells",
    "steady_state",
    "replays",
    "replay_passes",
    "replay_operations",
    "replay_streams",
    "replay_mappings",
    "application_runs",
    "latency_bins",
    "findings",
    "saturation",
    "exclusions",
    "conditions",
    "differences",
    "summary",
    "deltas",
    "drives",
    "hosts",
    "traces",
)

with reported(snakemake.log[0]):
    tables = {name: snakemake.input[name] for name in NAMES}
    recordings = [Path(manifest).parent for manifest in snakemake.input.manifests]
    write_report(
        tables, recordings, map(Path, snakemake.input.figures), snakemake.params.study, Path(snakemake.output[0])
    )
