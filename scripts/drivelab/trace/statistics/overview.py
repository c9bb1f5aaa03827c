"""Build the summary tables of a trace: one row overall, one per operation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from drivelab.trace.parquet_schema import FLAGS, OPERATIONS, has_queue_times
from drivelab.trace.statistics.bins import ERROR_PCT, largest, mean, percentile
from drivelab.trace.statistics.depth import Depth
from drivelab.trace.statistics.requests import Requests

KNOWN_SHARE = 0.99
"""Least share of requests with a completion to derive idle time from requests in flight."""
IDLE_GAP_NS = 100_000_000
"""A longer time without arrivals counts as idle if completions are unknown."""
PHASES = {
    "Q2C": "complete_ns - queue_ns",
    "Q2D": "dispatch_ns - queue_ns",
    "D2C": "complete_ns - dispatch_ns",
}
"""Queued to completed, queued to dispatched, dispatched to completed, as in btt."""
_COUNTED = {
    **{flag: flag for flag in FLAGS},
    "errors": "error <> 0",
    "split": "pieces > 1",
    "requeued": "requeues > 0",
    "without_dispatch": "dispatch_ns IS NULL",
    "without_completion": "complete_ns IS NULL",
}
"""Columns of `trace_operations` that count requests, and which."""


def extent(requests: Requests) -> tuple[int, int]:
    """Return [low, high) of the reads and writes in bytes; 0, 0 without any."""
    found = requests.row("SELECT min(offset_bytes) AS low, max(end_bytes) AS high FROM trace WHERE transfer")
    return found["low"] or 0, found["high"] or 0


def overview(
    requests: Requests, by_operation: pd.DataFrame, streams: pd.DataFrame, arrivals: pd.DataFrame,
    in_flight: Depth, dispatched: Depth, merged: int | None,
) -> pd.DataFrame:  # fmt: skip
    """Return the row of table `trace_overview`, without its column `trace`.

    docs/trace_statistics.md defines each value.
    """
    provenance, times = requests.provenance, requests.times
    marks = notes(provenance)
    moved = requests.kinds[0]
    moved = moved[moved["operation"].isin(["read", "write"])]
    sequential = moved["sequential"].astype(bool)
    transfers, (footprint, block_bytes) = int(moved["requests"].sum()), requests.footprint
    blocks = footprint.sum() * block_bytes
    main = streams[streams["main"].astype(bool)]
    low_bytes, high_bytes = extent(requests)
    bytes_of = by_operation.set_index("operation")["bytes"]
    origin = ("title", "application", "source", "backend", "format_imported", "kernel", "first_event")
    queue_depth = in_flight.statistics()
    if not requests.has_queue_times:
        queue_depth = dict.fromkeys(queue_depth, math.nan)
    row = {
        **{name: None if (text := provenance.get(name)) in (None, "") else str(text) for name in origin},
        "marks": list(marks),
        "notes": list(marks.values()),
        "capacity_bytes": provenance.get("capacity_bytes"),
        "time_resolution_ns": requests.resolution_ns,
        "lost": _lost(provenance),
        "malformed": int(provenance.get("malformed") or 0),
        "unmatched": sum(dict(provenance.get("unmatched") or {}).values()),
        "requests": times.requests,
        "duration_s": times.duration_ns / 1e9,
        "read_bytes": int(bytes_of["read"]),
        "write_bytes": int(bytes_of["write"]),
        "low_bytes": low_bytes,
        "high_bytes": high_bytes,
        "footprint_bytes": int(blocks["new"]),
        "read_footprint_bytes": int(blocks["read"]),
        "write_footprint_bytes": int(blocks["written"]),
        "footprint_block_bytes": block_bytes,
        "sequential_share_pct": _share(moved.loc[sequential, "requests"].sum(), transfers),
        "sequential_bytes_share_pct": _share(moved.loc[sequential, "bytes"].sum(), moved["bytes"].sum()),
        "strict_sequential_share_pct": _share(moved["strict"].sum(), transfers),
        "length_step_bytes": requests.kinds[1],
        "streams": len(streams),
        "main_streams": len(main),
        "main_streams_share_pct": _share(main["requests"].sum(), transfers),
        "interarrival_mean_us": mean(arrivals) / 1e3,
        **{f"interarrival_p{percent}_us": percentile(arrivals, percent) / 1e3 for percent in (50, 90, 99)},
        "interarrival_max_us": largest(arrivals) / 1e3,
        "interarrival_variation": variation(arrivals),
        "bin_error_pct": ERROR_PCT,
        **{f"queue_depth_{name}": value for name, value in queue_depth.items()},
        **{f"dispatch_depth_{name}": value for name, value in dispatched.statistics().items()},
        **_idle(requests, in_flight),
        "merged": merged,
        **_events(requests, by_operation),
    }
    return pd.DataFrame([row])


def variation(arrivals: pd.DataFrame) -> float:
    """Return the coefficient of variation of interarrival times: 0 for a clock, 1 for Poisson."""
    count = sum(arrivals["requests"])
    if count < 2 or not sum(arrivals["total"]):
        return math.nan
    return math.sqrt(max(sum(arrivals["squares"]) / count - mean(arrivals) ** 2, 0.0)) / mean(arrivals)


def operations(requests: Requests, kinds: pd.DataFrame, latency: pd.DataFrame) -> pd.DataFrame:
    """Return table `trace_operations` without column `trace`, in OPERATIONS order."""
    counted = ", ".join(f"count(*) FILTER ({chosen}) AS {name}" for name, chosen in _COUNTED.items())
    counts = requests.rows(f"SELECT operation, {counted} FROM trace GROUP BY operation").set_index("operation")
    counts = counts.reindex(list(OPERATIONS), fill_value=0)
    rows = []
    for operation in OPERATIONS:
        of_operation = kinds[kinds["operation"] == operation]
        number, moved_bytes = int(of_operation["requests"].sum()), int(of_operation["bytes"].sum())
        follows = of_operation["sequential"].astype(bool)
        transfers = number if operation in ("read", "write") else 0
        rows.append(
            {
                "operation": operation,
                "requests": number,
                "share_pct": _share(number, requests.times.requests),
                "bytes": moved_bytes,
                "mean_bytes": moved_bytes / number if number else math.nan,
                **_sizes(of_operation),
                "sequential_share_pct": _share(of_operation.loc[follows, "requests"].sum(), transfers),
                "strict_sequential_share_pct": _share(of_operation["strict"].sum(), transfers),
                **{name: int(counts.loc[operation, name]) for name in _COUNTED},
                **_latencies(latency[latency["operation"] == operation]),
            }
        )
    return pd.DataFrame(rows)


def _sizes(kinds: pd.DataFrame) -> dict[str, float]:
    """Return smallest, median, 99th percentile and largest length (nearest rank)."""
    names = ("min_bytes", "p50_bytes", "p99_bytes", "max_bytes")
    if kinds.empty:
        return dict.fromkeys(names, math.nan)
    reached = kinds["requests"].cumsum().to_numpy()
    ranks = [1, *(math.ceil(share * reached[-1] - 1e-9) for share in (0.5, 0.99)), reached[-1]]
    lengths = kinds["length_bytes"].to_numpy(np.float64)[np.searchsorted(reached, ranks)]
    return dict(zip(names, lengths.tolist(), strict=True))


def _latencies(latency: pd.DataFrame) -> dict[str, float]:
    columns: dict[str, float] = {}
    for phase in PHASES:
        bins = latency[latency["phase"] == phase]
        values = {
            "mean": mean(bins),
            **{name: percentile(bins, percent) for name, percent in (("p50", 50), ("p99", 99), ("p999", 99.9))},
            "max": largest(bins),
        }
        columns |= {f"{phase.lower()}_{name}_us": value / 1e3 for name, value in values.items()}
    return columns


def _idle(requests: Requests, in_flight: Depth) -> dict[str, Any]:
    """Return the idle share: from requests in flight, or else from gaps in arrivals."""
    times, gap_ns = requests.times, max(IDLE_GAP_NS, requests.resolution_ns)
    gaps = requests.row(f"""
        SELECT coalesce(sum(gap_ns) FILTER (gap_ns > {gap_ns}), 0) AS idle_ns
        FROM (SELECT queue_ns - lag(queue_ns) OVER () AS gap_ns FROM trace)""")
    by_gaps = _share(gaps["idle_ns"], times.duration_ns)
    known = in_flight.known and times.completed >= KNOWN_SHARE * times.requests
    return {
        "idle_share_pct": _share(in_flight.idle_ns, times.duration_ns) if known else by_gaps,
        "idle_basis": "nothing in flight" if known else "long gaps between arrivals",
        "idle_gap_share_pct": by_gaps,
        "idle_gap_s": gap_ns / 1e9,
    }


def _events(requests: Requests, by_operation: pd.DataFrame) -> dict[str, Any]:
    errors = requests.rows(
        "SELECT error, count(*) AS requests FROM trace WHERE error <> 0 GROUP BY error ORDER BY error"
    )
    totals = by_operation[["split", "requeued", "errors", "without_dispatch", "without_completion"]].sum()
    return {
        **{str(name): int(total) for name, total in totals.items()},
        "error_codes": [f"errno {error.error}: {error.requests}" for error in errors.itertuples()],
        **requests.row("SELECT count(*) AS times_backwards FROM trace WHERE backwards"),
    }


def notes(provenance: Mapping[str, Any]) -> dict[str, str]:
    """Return a trace's marks, each with a short explanation."""
    marks: dict[str, str] = {}
    if _lost(provenance):
        marks["lossy"] = f"{_lost(provenance):,} events were lost ({_counts(provenance['lost'])})"
    left_out = int(provenance.get("malformed") or 0)
    if left_out:
        marks["incomplete"] = f"{left_out:,} malformed lines of the source were skipped"
    if provenance.get("unmatched"):
        reason = f"unmatched events: {_counts(provenance['unmatched'])}"
        marks["incomplete"] = "; ".join(filter(None, [marks.get("incomplete"), reason]))
    if not has_queue_times(provenance):
        marks["issue times"] = "requests begin when they were issued to the drive; times before are not known"
    if provenance.get("derived"):
        steps = (str(step.get("step", step)) for step in provenance["derived"])
        marks["derived"] = "derived by: " + ", ".join(steps)
    if provenance.get("format_imported"):
        marks["imported"] = f"imported from {provenance.get('source', 'a file')} ({provenance['format_imported']})"
    if provenance.get("virtual"):
        marks["virtual"] = "captured on a virtual drive: a model computed the latencies"
    return marks


def _lost(provenance: Mapping[str, Any]) -> int:
    return sum(dict(provenance.get("lost") or {}).values())


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in counts.items())


def _share(part: float, whole: float) -> float:
    """Return a percentage; NaN if `whole` is 0."""
    return 100 * float(part) / float(whole) if whole else math.nan
