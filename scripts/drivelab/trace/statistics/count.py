"""Count a trace into tables, a query each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.trace.parquet_schema import OPERATIONS
from drivelab.trace.statistics import overview
from drivelab.trace.statistics.bins import histogram_sql
from drivelab.trace.statistics.depth import Depth, depths
from drivelab.trace.statistics.overview import PHASES
from drivelab.trace.statistics.requests import Requests, opened
from drivelab.trace.statistics.streams import streams

_TEXTS = {"source": "backend", "application": "application"}
_COUNTS = {"reads": "read", "writes": "write", "flushes": "flush", "discards": "discard"}
_LEAST_SPAN_NS = 1000
"""Shorter traces have no rate."""


def row_of(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """Return a trace's row of table `traces`, from the tables of statistics.count."""
    facts = tables["trace_overview"].iloc[0]
    operations = tables["trace_operations"].set_index("operation")
    lost = int(facts["lost"])
    return {
        "trace": str(facts["trace"]),
        **{column: "unknown" if pd.isna(facts[name]) else facts[name] for column, name in _TEXTS.items()},
        "requests": int(operations["requests"].sum()),
        **{name: int(operations.loc[operation, "requests"]) for name, operation in _COUNTS.items()},
        "read_bytes": int(operations.loc["read", "bytes"]),
        "write_bytes": int(operations.loc["write", "bytes"]),
        "footprint_bytes": int(facts["footprint_bytes"]),
        "footprint_block_bytes": int(facts["footprint_block_bytes"]),
        "duration_s": float(facts["duration_s"]),
        "lossy": lost > 0,
        "lost": lost,
    }


def count(path: Path, trace: str) -> dict[str, pd.DataFrame]:
    """Return all tables of drivelab.tables.schemas.TRACE_TABLES for trace `trace`.

    Memory does not grow with the trace. The result does not depend on the batches of the file.

    Raises UserError when the file is not a trace, is damaged, or has no or impossible requests.
    """
    with opened(path) as requests:
        return tables(requests, trace)


def tables(requests: Requests, trace: str) -> dict[str, pd.DataFrame]:
    """Return the tables of an open trace; each has the trace's name as last column."""
    kinds, step_bytes = requests.kinds
    latency = _latency(requests)
    arrivals = requests.rows(histogram_sql("SELECT queue_ns - lag(queue_ns) OVER () AS value FROM trace"))
    in_flight, at_drive, merged = depths(requests)
    all_streams = streams(kinds, step_bytes)
    sizes = kinds.groupby(["operation", "length_bytes"], as_index=False)["requests"].sum()
    bins = ["low", "high", "requests"]
    operations = overview.operations(requests, kinds, latency)
    frames = {
        "trace_overview": overview.overview(requests, operations, all_streams, arrivals, in_flight, at_drive, merged),
        "trace_operations": operations,
        "trace_over_time": _over_time(requests, in_flight, at_drive),
        "trace_sizes": sizes.assign(length_step_bytes=step_bytes),
        "trace_interarrival": arrivals[bins].rename(columns={"low": "low_ns", "high": "high_ns"}),
        "trace_burstiness": _burstiness(requests),
        "trace_latency": latency[["operation", "phase", *bins]].rename(columns={"low": "low_ns", "high": "high_ns"}),
        "trace_heat": _heat(requests),
        "trace_streams": all_streams,
    }
    return {name: frame.assign(trace=trace) for name, frame in frames.items()}


def _latency(requests: Requests) -> pd.DataFrame:
    """Return the histogram of each phase of each operation, of the requests that have both events."""
    phases = list(PHASES)[0 if requests.has_queue_times else 2 :]
    values = " UNION ALL ".join(
        f"SELECT operation, '{phase}' AS phase, {PHASES[phase]} AS value FROM trace" for phase in phases
    )
    bins = requests.rows(histogram_sql(values))
    order = [bins["operation"].map(OPERATIONS.index), bins["phase"].map(list(PHASES).index), bins["low"]]
    return bins.iloc[np.lexsort(order[::-1])].reset_index(drop=True) if len(bins) else bins


SCALES_NS = tuple(10**power for power in range(6, 12))
"""1 ms to 100 s."""
LEAST_WINDOWS = 10
"""Fewest windows for a variance."""


def _burstiness(requests: Requests) -> pd.DataFrame:
    """Return the index of dispersion of counts in equal windows, at each scale within the trace.

    A partial window at the end is left out.
    """
    rows, first_ns = [], requests.times.first_ns
    for width_ns in SCALES_NS:
        windows = (requests.times.last_queue_ns - first_ns) // width_ns
        if width_ns < requests.resolution_ns or windows < LEAST_WINDOWS:
            continue
        totals = requests.row(f"""
            SELECT sum(requests)::BIGINT AS requests, sum(requests * requests) AS squares
            FROM (SELECT (queue_ns - ({first_ns})) // {width_ns} AS part, count(*) AS requests FROM trace GROUP BY part)
            WHERE part < {windows}""")
        mean = totals["requests"] / windows
        variance = max(int(totals["squares"]) / windows - mean * mean, 0.0)
        rows.append((width_ns / 1e9, windows, mean, variance, variance / mean if mean else math.nan))
    return pd.DataFrame(rows, columns=["window_s", "windows", "mean_requests", "variance", "dispersion"])


def _over_time(requests: Requests, in_flight: Depth, at_drive: Depth) -> pd.DataFrame:
    """Return table `trace_over_time`: a row for each interval; times start at the first request."""
    intervals, (blocks, block_bytes) = requests.intervals, requests.footprint
    edges_s = intervals.edges_ns() / 1e9
    totals = requests.rows("""
        SELECT nth, operation, count(*) AS requests, sum(length_bytes)::BIGINT AS bytes FROM trace GROUP BY ALL""")
    by_operation = {
        what: totals.pivot(index="nth", columns="operation", values=what).reindex(
            index=range(intervals.count), columns=list(OPERATIONS)
        ).fillna(0).astype(np.int64)
        for what in ("requests", "bytes")
    }  # fmt: skip
    counts = by_operation["requests"]
    in_all = counts.sum(axis=1).to_numpy()
    timed = intervals.span_ns >= _LEAST_SPAN_NS
    return pd.DataFrame(
        {
            "begin_s": edges_s[:-1],
            "end_s": edges_s[1:],
            "requests": in_all,
            **{name: counts[operation] for name, operation in {**_COUNTS, "write_zeroes": "write-zeroes"}.items()},
            **{f"{name}_bytes": by_operation["bytes"][name] for name in ("read", "write", "discard")},
            "requests_per_s": in_all / np.diff(edges_s) if timed else np.nan,
            "footprint_bytes": blocks["new"].cumsum() * block_bytes,
            "working_set_bytes": blocks["working"] * block_bytes,
            "block_bytes": block_bytes,
            **_depths("queue_depth", in_flight, known=requests.has_queue_times),
            **_depths("dispatch_depth", at_drive),
        }
    )


def _depths(name: str, depth: Depth, *, known: bool = True) -> dict[str, npt.NDArray[np.float64]]:
    mean, largest = depth.in_intervals()
    unknown = 0.0 if known else np.nan
    return {f"{name}_mean": mean + unknown, f"{name}_max": largest + unknown}


BANDS = 128
_ALIGNMENT_BYTES = 4096


def _heat(requests: Requests) -> pd.DataFrame:
    """Return table `trace_heat`: a row for each non-empty cell of time and address; a request counts at its start."""
    low, high = overview.extent(requests)
    low = low // _ALIGNMENT_BYTES * _ALIGNMENT_BYTES
    band_bytes = -(-max(high - low, 1) // (BANDS * _ALIGNMENT_BYTES)) * _ALIGNMENT_BYTES
    cells = requests.rows(f"""
        SELECT nth, (offset_bytes - {low}) // {band_bytes} AS band,
               count(*) FILTER (operation = 'read') AS reads, count(*) FILTER (operation = 'write') AS writes,
               sum(CASE operation WHEN 'read' THEN length_bytes ELSE 0 END)::BIGINT AS read_bytes,
               sum(CASE operation WHEN 'write' THEN length_bytes ELSE 0 END)::BIGINT AS write_bytes
        FROM trace WHERE transfer GROUP BY ALL ORDER BY ALL""").astype(np.int64)
    edges_s, nth = requests.intervals.edges_ns() / 1e9, cells["nth"].to_numpy()
    low_bytes = low + cells["band"] * band_bytes
    place = {"begin_s": edges_s[nth], "end_s": edges_s[nth + 1], "low_bytes": low_bytes}
    return cells.assign(**place, high_bytes=low_bytes + band_bytes).drop(columns=["nth", "band"])
