"""Tables of a study as files in its report."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

import pyarrow as pa

from drivelab.report.document import Download
from drivelab.tables import io
from drivelab.tables.schemas import SCHEMAS

MOST_BYTES = 16 << 10
"""Largest table that the report embeds besides _RESULTS: cells, seconds and histograms would be most of the page."""
_RESULTS = ("summary", "deltas")
_MOST_DATA_BYTES = 1 << 20
"""A table with more data in its files is not put together."""
_ZSTD_LEVEL = 12
"""Level 19 takes four times the time for 2 % less."""
_MEANINGS = {
    "summary": "every value of every test and drive, with samples, spread, interval, verdict and evidence",
    "deltas": "every comparison with the basis, with interval, p-values, verdict, doubts and remarks",
    "cells": "every cell: workload, speed, latency, telemetry, folder of its evidence",
    "latency_bins": "latency histograms, by cell, direction and bin",
    "series": "IOPS, throughput and latency second by second",
    "steady_state": "steady-state determination of every tracked variable",
    "saturation": "cliff and level of every soak that saturates a drive",
    "findings": "results of every detector, also those that found nothing",
    "exclusions": "data excluded from every result, and why",
    "differences": "every difference between the compared drives",
    "conditions": "the conditions of every recording",
    "telemetry": "temperature, throttling, load, CPU time and power over time",
    "replays": "every run of every trace: access time, throughput, score, percentiles, fidelity",
    "replay_passes": "passes over all traces of a set",
    "replay_operations": "reads, writes, flushes, discards: planned, issued, completed and failed counts, latency",
    "replay_streams": "I/O streams and processes of the replays",
    "replay_latency": "latency distribution of the replays",
    "replay_issue_errors": "distribution of the times from deadline to issue",
    "replay_over_time": "rate, throughput, depth and latency during each replay, planned and replayed",
    "replay_mappings": "changes that mapped each trace onto each drive",
    "application_runs": "every run of an application: duration and its parts, bytes, CPU time",
    "load_rates": "every rate of a load: outcome, response times with the interval of the limited percentile, doubts",
    "drives": "the drives, as they identify themselves",
    "hosts": "the hosts",
    "model_deltas": "each model against the basis, from its specimens",
    "variation": "what makes the values of each test vary",
    "traces": "the replayed traces",
    "trace_overview": "each trace: requests, bytes, footprint, randomness, unknown properties",
    "trace_operations": "operations of each trace",
    "trace_over_time": "each trace over time",
    "trace_sizes": "request sizes of each trace",
    "trace_interarrival": "times between the requests of each trace",
    "trace_burstiness": "burstiness of each trace",
    "trace_latency": "latencies that each trace recorded",
    "trace_heat": "where on the drive each trace reads and writes, and when",
    "trace_streams": "I/O streams and processes of each trace",
}


def downloads(paths: Iterable[Path]) -> tuple[Download, ...]:
    """Return a download for each table in `paths`; each file is named after its table.

    A table without rows, or larger than `MOST_BYTES` and not in _RESULTS, has no file. Raises UserError for an
    unreadable file, TableError for a file that does not match its schema.
    """
    files: dict[str, list[Path]] = {name: [] for name in _MEANINGS}
    for path in paths:
        files[path.stem].append(path)
    found = []
    for name, of_name in files.items():
        rows = size_bytes = 0
        parts = [SCHEMAS[name].empty_table()]
        for path in of_name:
            with io.opened(path) as file:
                rows += file.metadata.num_rows
                # without the footer: each recording's file repeats the column metadata
                size_bytes += path.stat().st_size - int(file.metadata.serialized_size)
                if size_bytes <= _MOST_DATA_BYTES and file.metadata.num_rows:
                    parts.append(file.read().replace_schema_metadata(None))
        parquet = _parquet(pa.concat_tables(parts), name) if rows and size_bytes <= _MOST_DATA_BYTES else b""
        kept = parquet if name in _RESULTS or len(parquet) <= MOST_BYTES else b""
        if of_name:
            found.append(Download(name, _MEANINGS[name], rows, size_bytes, kept))
    return tuple(found)


def _parquet(table: pa.Table, name: str) -> bytes:
    """Return a table as a small file: without dictionaries, statistics and Arrow's copy of the schema."""
    whole, output = io.checked(table, name), BytesIO()
    io.pack(whole, output, whole.schema.metadata, compression="zstd", compression_level=_ZSTD_LEVEL,
            use_dictionary=False, write_statistics=False, store_schema=False)  # fmt: skip
    return output.getvalue()
