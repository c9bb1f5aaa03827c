"""The tables that sum up a trace: one row in all, and one for each operation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from drivelab.trace.schema import OPERATIONS
from drivelab.trace.statistics import marks
from drivelab.trace.statistics.batch import READ, WRITE
from drivelab.trace.statistics.bins import ERROR_PCT, LogHistogram
from drivelab.trace.statistics.depth import Depth
from drivelab.trace.statistics.latency import PHASES
from drivelab.trace.statistics.lengths import LengthCounts

if TYPE_CHECKING:
    from drivelab.trace.statistics.count import Counters

KNOWN_SHARE = 0.99
"""Of the requests must have a completion for what was in flight to tell idle time."""


def overview(counters: Counters, provenance: Mapping[str, Any]) -> pd.DataFrame:
    """The row of the table `trace_overview` without its column `trace`; docs/trace_statistics.md defines each value."""
    found, said = counters.survey, marks.notes(provenance)
    between = counters.arrivals.between
    p50, p90, p99 = (value / 1e3 for value in between.percentiles(50, 90, 99))
    moved = slice(READ, WRITE + 1)
    transfers, moved_bytes = int(found.operations[moved].sum()), int(found.bytes[moved].sum())
    origin = ("title", "application", "source", "backend", "format_imported", "kernel", "first_event")
    row = {
        **{name: _text(provenance.get(name)) for name in origin},
        "marks": list(said),
        "notes": list(said.values()),
        "capacity_bytes": provenance.get("capacity_bytes"),
        "time_resolution_ns": counters.resolution_ns,
        "lost": marks.lost(provenance),
        "malformed": int(provenance.get("malformed") or 0),
        "unmatched": sum(dict(provenance.get("unmatched") or {}).values()),
        "requests": found.requests,
        "duration_s": found.duration_ns / 1e9,
        "read_bytes": int(found.bytes[READ]),
        "write_bytes": int(found.bytes[WRITE]),
        "low_bytes": found.low_bytes,
        "high_bytes": found.high_bytes,
        "footprint_bytes": counters.timeline.footprint_bytes,
        "read_footprint_bytes": counters.timeline.read_blocks << found.words.block_shift,
        "write_footprint_bytes": counters.timeline.write_blocks << found.words.block_shift,
        "footprint_block_bytes": found.words.block_bytes,
        "sequential_share_pct": _share(found.sequential.sum(), transfers),
        "sequential_bytes_share_pct": _share(found.sequential_bytes.sum(), moved_bytes),
        "strict_sequential_share_pct": _share(found.strict.sum(), transfers),
        "length_step_bytes": found.lengths.step_bytes,
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
        **_depth("queue_depth", counters.queued, found.duration_ns),
        **_depth("dispatch_depth", counters.dispatched.depth, found.duration_ns),
        **_idle(counters),
        **_events(counters),
        **_concentration(counters),
    }
    return pd.DataFrame([row])


def operations(counters: Counters) -> pd.DataFrame:
    """Rows of the table `trace_operations` without its column `trace`, in the order of OPERATIONS."""
    found = counters.survey
    sizes = found.lengths.frame()
    rows = []
    for number, operation in enumerate(OPERATIONS):
        mine, n = sizes[sizes["operation"] == operation], int(found.operations[number])
        least, median, p99, largest = _sizes(mine)
        rows.append(
            {
                "operation": operation,
                "requests": n,
                "share_pct": _share(n, found.requests),
                "bytes": int(found.bytes[number]),
                "mean_bytes": int(found.bytes[number]) / n if n else math.nan,
                "min_bytes": least,
                "p50_bytes": median,
                "p99_bytes": p99,
                "max_bytes": largest,
                "sequential_share_pct": _share(found.sequential[number], n if number <= WRITE else 0),
                "strict_sequential_share_pct": _share(found.strict[number], n if number <= WRITE else 0),
                **{name: int(values[number]) for name, values in counters.operations.counts.items()},
                **_latencies({phase: counters.latency.histograms[operation, phase] for phase in PHASES}),
            }
        )
    return pd.DataFrame(rows)


def depths(counters: Counters) -> dict[str, Any]:
    """Columns of the table `trace_over_time`: mean and largest depth in each interval; null where unknown."""
    columns: dict[str, Any] = {}
    for name, depth in (("queue_depth", counters.queued), ("dispatch_depth", counters.dispatched.depth)):
        largest = depth.largest()
        nothing = np.full(counters.intervals.count, np.nan)
        columns[f"{name}_mean"] = depth.mean() if depth.counted else nothing
        columns[f"{name}_max"] = nothing if largest is None or not depth.counted else largest.astype(np.float64)
    return columns


def sizes(lengths: LengthCounts) -> pd.DataFrame:
    """Rows of the table `trace_sizes` without its column `trace`: requests by operation and length."""
    frame = lengths.frame().groupby(["operation", "length_bytes"], as_index=False)["requests"].sum()
    return frame.assign(length_step_bytes=lengths.step_bytes)


def _sizes(mine: pd.DataFrame) -> tuple[float, float, float, float]:
    """Least, median, 99 % and largest length, by nearest rank."""
    if mine.empty:
        return (math.nan,) * 4
    reached = mine["requests"].cumsum().to_numpy()
    ranks = [1, *(math.ceil(share * reached[-1] - 1e-9) for share in (0.5, 0.99)), reached[-1]]
    least, median, p99, largest = mine["length_bytes"].to_numpy(np.float64)[np.searchsorted(reached, ranks)]
    return float(least), float(median), float(p99), float(largest)


def _latencies(histograms: Mapping[str, LogHistogram]) -> dict[str, float]:
    columns: dict[str, float] = {}
    for phase, one in histograms.items():
        p50, p99, p999 = one.percentiles(50, 99, 99.9)
        largest = one.largest if one.n else math.nan
        values = {"mean": one.mean, "p50": p50, "p99": p99, "p999": p999, "max": largest}
        columns |= {f"{phase.lower()}_{name}_us": value / 1e3 for name, value in values.items()}
    return columns


def _depth(name: str, depth: Depth, duration_ns: int) -> dict[str, float]:
    """Over the time of the whole trace; NaN where nothing is known of what was in flight."""
    largest = depth.largest()
    known = depth.counted > 0
    return {
        f"{name}_mean": depth.total_ns / duration_ns if known and duration_ns else math.nan,
        f"{name}_p50": depth.percentile(50) if known else math.nan,
        f"{name}_p99": depth.percentile(99) if known else math.nan,
        f"{name}_max": float(largest.max()) if known and largest is not None else math.nan,
    }


def _idle(counters: Counters) -> dict[str, Any]:
    """How much of the time had nothing to do: by what was in flight, or by long times without an arrival."""
    found, arrivals, time_ns = counters.survey, counters.arrivals, counters.queued.time_ns()
    by_gaps = _share(arrivals.idle_ns, found.duration_ns)
    told = time_ns is not None and found.completed >= KNOWN_SHARE * found.requests
    return {
        "idle_share_pct": _share(time_ns[0], found.duration_ns) if told and time_ns is not None else by_gaps,
        "idle_basis": "nothing in flight" if told else "long gaps between arrivals",
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


def _concentration(counters: Counters) -> dict[str, float]:
    """How much of the accesses to blocks goes to the most accessed of them."""
    shares = {
        f"top_{top}_pct_{which}_share_pct": counters.reuse.top_share_pct(top, which)
        for which in ("all", "read", "write")
        for top in (1, 10)
    }
    sample = counters.survey.sample
    return {**shares, "followed_block_bytes": sample.block_bytes, "followed_share_pct": 100 * sample.share}


def _share(part: int | np.int64, whole: int | np.int64) -> float:
    """As a percentage; NaN of nothing."""
    return 100 * float(part) / float(whole) if whole else math.nan


def _text(value: Any) -> str | None:
    return None if value in (None, "") else str(value)
