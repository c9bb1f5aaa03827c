"""Build the summary tables of a trace: one row overall, one per operation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from drivelab.trace.parquet_schema import OPERATIONS
from drivelab.trace.statistics import batch
from drivelab.trace.statistics.batch import READ, WRITE
from drivelab.trace.statistics.bins import ERROR_PCT, LogHistogram
from drivelab.trace.statistics.depth import Depth
from drivelab.trace.statistics.latencies import PHASES, LengthCounts

if TYPE_CHECKING:
    from drivelab.trace.statistics.count import Counters

KNOWN_SHARE = 0.99
"""Least share of requests with a completion to derive idle time from requests in flight."""


def overview(counters: Counters, provenance: Mapping[str, Any]) -> pd.DataFrame:
    """Return the row of table `trace_overview`, without its column `trace`.

    docs/trace_statistics.md defines each value.
    """
    survey, notes = counters.survey, batch.notes(provenance)
    between = counters.arrivals.between
    p50, p90, p99 = (value / 1e3 for value in between.percentiles(50, 90, 99))
    moved = slice(READ, WRITE + 1)
    transfers, moved_bytes = int(survey.operations[moved].sum()), int(survey.bytes[moved].sum())
    origin = ("title", "application", "source", "backend", "format_imported", "kernel", "first_event")
    row = {
        **{name: _text(provenance.get(name)) for name in origin},
        "marks": list(notes),
        "notes": list(notes.values()),
        "capacity_bytes": provenance.get("capacity_bytes"),
        "time_resolution_ns": counters.resolution_ns,
        "lost": batch.lost(provenance),
        "malformed": int(provenance.get("malformed") or 0),
        "unmatched": sum(dict(provenance.get("unmatched") or {}).values()),
        "requests": survey.requests,
        "duration_s": survey.duration_ns / 1e9,
        "read_bytes": int(survey.bytes[READ]),
        "write_bytes": int(survey.bytes[WRITE]),
        "low_bytes": survey.low_bytes,
        "high_bytes": survey.high_bytes,
        "footprint_bytes": counters.timeline.footprint_bytes,
        "read_footprint_bytes": counters.timeline.read_blocks << survey.words.block_shift,
        "write_footprint_bytes": counters.timeline.write_blocks << survey.words.block_shift,
        "footprint_block_bytes": survey.words.block_bytes,
        "sequential_share_pct": _share(survey.sequential.sum(), transfers),
        "sequential_bytes_share_pct": _share(survey.sequential_bytes.sum(), moved_bytes),
        "strict_sequential_share_pct": _share(survey.strict.sum(), transfers),
        "length_step_bytes": survey.lengths.step_bytes,
        "streams": len(counters.streams),
        "main_streams": int(counters.streams["main"].sum()),
        "main_streams_share_pct": _share(counters.streams.loc[counters.streams["main"], "requests"].sum(), transfers),
        "interarrival_mean_us": between.mean / 1e3,
        "interarrival_p50_us": p50,
        "interarrival_p90_us": p90,
        "interarrival_p99_us": p99,
        "interarrival_max_us": between.largest / 1e3 if between.n else math.nan,
        "interarrival_variation": counters.arrivals.variation,
        "bin_error_pct": ERROR_PCT,
        **_depth("queue_depth", counters.queued, survey.duration_ns),
        **_depth("dispatch_depth", counters.dispatched.depth, survey.duration_ns),
        **_idle(counters),
        **_events(counters),
    }
    return pd.DataFrame([row])


def operations(counters: Counters) -> pd.DataFrame:
    """Return table `trace_operations` without column `trace`, in OPERATIONS order."""
    survey = counters.survey
    sizes = survey.lengths.frame()
    rows = []
    for number, operation in enumerate(OPERATIONS):
        sizes_, n = sizes[sizes["operation"] == operation], int(survey.operations[number])
        least, median, p99, largest = _sizes(sizes_)
        rows.append(
            {
                "operation": operation,
                "requests": n,
                "share_pct": _share(n, survey.requests),
                "bytes": int(survey.bytes[number]),
                "mean_bytes": int(survey.bytes[number]) / n if n else math.nan,
                "min_bytes": least,
                "p50_bytes": median,
                "p99_bytes": p99,
                "max_bytes": largest,
                "sequential_share_pct": _share(survey.sequential[number], n if number <= WRITE else 0),
                "strict_sequential_share_pct": _share(survey.strict[number], n if number <= WRITE else 0),
                **{name: int(values[number]) for name, values in counters.operations.counts.items()},
                **_latencies({phase: counters.latency.histograms[operation, phase] for phase in PHASES}),
            }
        )
    return pd.DataFrame(rows)


def depths(counters: Counters) -> dict[str, Any]:
    """Return the depth columns of table `trace_over_time`.

    They are mean and largest depth in each interval, null if unknown.
    """
    columns: dict[str, Any] = {}
    for name, depth in (("queue_depth", counters.queued), ("dispatch_depth", counters.dispatched.depth)):
        largest = depth.largest()
        nothing = np.full(counters.intervals.count, np.nan)
        columns[f"{name}_mean"] = depth.mean() if depth.counted else nothing
        columns[f"{name}_max"] = nothing if largest is None or not depth.counted else largest.astype(np.float64)
    return columns


def sizes(lengths: LengthCounts) -> pd.DataFrame:
    """Return table `trace_sizes` without column `trace`."""
    frame = lengths.frame().groupby(["operation", "length_bytes"], as_index=False)["requests"].sum()
    return frame.assign(length_step_bytes=lengths.step_bytes)


def _sizes(kinds: pd.DataFrame) -> tuple[float, float, float, float]:
    """Return smallest, median, 99th percentile and largest length (nearest rank)."""
    if kinds.empty:
        return (math.nan,) * 4
    reached = kinds["requests"].cumsum().to_numpy()
    ranks = [1, *(math.ceil(share * reached[-1] - 1e-9) for share in (0.5, 0.99)), reached[-1]]
    least, median, p99, largest = kinds["length_bytes"].to_numpy(np.float64)[np.searchsorted(reached, ranks)]
    return float(least), float(median), float(p99), float(largest)


def _latencies(histograms: Mapping[str, LogHistogram]) -> dict[str, float]:
    columns: dict[str, float] = {}
    for phase, histogram in histograms.items():
        p50, p99, p999 = histogram.percentiles(50, 99, 99.9)
        largest = histogram.largest if histogram.n else math.nan
        values = {"mean": histogram.mean, "p50": p50, "p99": p99, "p999": p999, "max": largest}
        columns |= {f"{phase.lower()}_{name}_us": value / 1e3 for name, value in values.items()}
    return columns


def _depth(name: str, depth: Depth, duration_ns: int) -> dict[str, float]:
    """Return depth statistics over the whole trace; NaN if unknown."""
    largest = depth.largest()
    known = depth.counted > 0
    return {
        f"{name}_mean": depth.total_ns / duration_ns if known and duration_ns else math.nan,
        f"{name}_p50": depth.percentile(50) if known else math.nan,
        f"{name}_p99": depth.percentile(99) if known else math.nan,
        f"{name}_max": float(largest.max()) if known and largest is not None else math.nan,
    }


def _idle(counters: Counters) -> dict[str, Any]:
    """Return the idle share: from requests in flight, or else from gaps in arrivals."""
    survey, arrivals, time_ns = counters.survey, counters.arrivals, counters.in_flight.time_ns()
    by_gaps = _share(arrivals.idle_ns, survey.duration_ns)
    known = time_ns is not None and survey.completed >= KNOWN_SHARE * survey.requests
    return {
        "idle_share_pct": _share(time_ns[0], survey.duration_ns) if known and time_ns is not None else by_gaps,
        "idle_basis": "nothing in flight" if known else "long gaps between arrivals",
        "idle_gap_share_pct": by_gaps,
        "idle_gap_s": arrivals.idle_gap_ns / 1e9,
    }


def _events(counters: Counters) -> dict[str, Any]:
    operations, dispatched = counters.operations, counters.dispatched
    return {
        "merged": dispatched.merged if dispatched.identified else None,
        **{name: operations.total(name) for name in ("split", "requeued", "errors")},
        "error_codes": [f"errno {code}: {count}" for code, count in sorted(operations.errors.items())],
        **{name: operations.total(name) for name in ("without_dispatch", "without_completion")},
        "times_backwards": operations.backwards,
    }


def _share(part: int | np.int64, whole: int | np.int64) -> float:
    """Return a percentage; NaN if `whole` is 0."""
    return 100 * float(part) / float(whole) if whole else math.nan


def _text(value: Any) -> str | None:
    return None if value in (None, "") else str(value)
