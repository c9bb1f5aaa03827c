"""The tables of the study as files to be downloaded: each one Parquet file over all recordings and traces."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from drivelab.errors import UserError
from drivelab.report.view import Download
from drivelab.tables import io
from drivelab.tables.schemas import SCHEMAS

MOST_BYTES = 2 << 20
"""Compressed data of a table that the report still carries."""
_MEANINGS = {
    "summary": "every value of every test and drive, with samples, spread, interval, verdict and evidence",
    "deltas": "every comparison with the basis, with interval, p-values, verdict, doubts and remarks",
    "cells": "every cell: what was asked, speed and latency, telemetry, where its evidence lies",
    "latency_bins": "histograms of latency, by cell, direction and bin",
    "series": "IOPS, throughput and latency second by second",
    "steady_state": "the determination of steady state of every tracked variable",
    "saturation": "cliff and level of every soak that saturates a drive",
    "findings": "what every detector found, and what it looked for in vain",
    "exclusions": "what is left out of every result, and why",
    "differences": "all that differs between the compared drives",
    "conditions": "what every recording was made under",
    "telemetry": "temperature, throttling, load, CPU time and power over time",
    "replays": "every run of every trace: access time, throughput, score, percentiles, fidelity",
    "replay_passes": "passes over all traces of a set",
    "replay_operations": "reads, writes, flushes, discards: planned, issued, completed, failed, and how long they took",
    "replay_streams": "I/O streams and processes of the replays",
    "replay_latency": "distribution of the latencies of the replays",
    "replay_issue_errors": "distribution of the times from due to issued",
    "replay_over_time": "rate, throughput, depth and latency over a replay's time, planned and replayed",
    "replay_mappings": "what it took to bring each trace onto each drive",
    "application_runs": "every run of an application: duration and its parts, bytes, CPU time",
    "drives": "the drives by their own word",
    "hosts": "the hosts",
    "traces": "the traces that were replayed",
    "trace_overview": "each trace: requests, bytes, footprint, randomness, what is unknown of it",
    "trace_operations": "operations of each trace",
    "trace_over_time": "each trace over time",
    "trace_sizes": "sizes of the requests of each trace",
    "trace_interarrival": "times between the requests of each trace",
    "trace_burstiness": "how the requests of each trace come in bursts",
    "trace_latency": "latencies that each trace recorded",
    "trace_heat": "where on the drive each trace reads and writes, and when",
    "trace_streams": "I/O streams and processes of each trace",
    "trace_streams_over_time": "the most frequent streams of each trace over time",
    "trace_reuse": "how soon each trace comes back to the same bytes",
}


def downloads(paths: Iterable[Path]) -> tuple[Download, ...]:
    """A download for each table that `paths` are of, which are files called after their table.

    One without rows, and one whose data take more than `MOST_BYTES`, has no file. Raises UserError for a file that
    cannot be read, TableError for one that is not as its table must be.
    """
    files: dict[str, list[Path]] = {name: [] for name in _MEANINGS}
    for path in paths:
        files[path.stem].append(path)
    return tuple(_download(name, of_name) for name, of_name in files.items() if of_name)


def _download(name: str, paths: list[Path]) -> Download:
    rows = size_bytes = 0
    parts = [SCHEMAS[name].empty_table()]
    for path in paths:
        try:
            file = pq.ParquetFile(path)
            rows += file.metadata.num_rows
            # what a file says of its columns would be there for each recording anew
            size_bytes += path.stat().st_size - int(file.metadata.serialized_size)
            if size_bytes <= MOST_BYTES and file.metadata.num_rows:
                parts.append(file.read().replace_schema_metadata(None))
        except (pa.ArrowInvalid, OSError) as error:
            raise UserError(f"{path}: cannot be read as Parquet ({error}); delete it and run again") from None
    fits = rows > 0 and size_bytes <= MOST_BYTES
    return Download(name, _MEANINGS[name], rows, size_bytes, _parquet(pa.concat_tables(parts), name) if fits else b"")


def _parquet(table: pa.Table, name: str) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.parquet"
        io.write(table, path, name)
        return path.read_bytes()
