"""Compute the metrics of a replay as trace-based benchmarks define them.

UL, support article on the PCMark 10 storage benchmarks: access time is the time from start to end of a read or write,
averaged over all of them; busy time is the time with at least one read or write in flight; bandwidth is bytes divided
by busy time; the score is the geometric mean of the bandwidth and the reciprocal of the average access time. UL does
not publish its factor, so this score compares only with other scores from drivelab.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from drivelab.replay.evaluation.requests import Floats, Requests, distribution, mean
from drivelab.trace.parquet_schema import OPERATIONS

MIB = 1 << 20
SCORE_FORMULA = "score = sqrt(bandwidth in MiB/s * 1 000 000 / average access time in µs)"


def score(bandwidth_mib_s: float | None, access_time_us: float | None) -> float | None:
    """Return the geometric mean of bandwidth in MiB/s and 1/access time in 1/s.

    The result is None if one is missing or zero.
    """
    if not bandwidth_mib_s or not access_time_us:
        return None
    return math.sqrt(bandwidth_mib_s * 1e6 / access_time_us)


def busy_ns(begin_ns: Floats, end_ns: Floats) -> float:
    """Return the length of the union of the intervals [begin, end).

    Both arrays have shape (n,), in any order, without NaN.
    """
    if not begin_ns.size:
        return 0.0
    if (begin_ns[1:] < begin_ns[:-1]).any():
        order = np.argsort(begin_ns, kind="stable")
        begin_ns, end_ns = begin_ns[order], end_ns[order]
    reached = np.maximum.accumulate(end_ns)
    begins = begin_ns.copy()
    np.maximum(begins[1:], reached[:-1], out=begins[1:])
    return float(np.maximum(end_ns - begins, 0).sum())


def service(requests: Requests, last_ns: float | None = None) -> dict[str, Any]:
    """Return how the drive served the reads and writes of a replay; a value without data is None.

    Busy time covers all issued requests: a request that never completed kept the drive busy to the end (`last_ns`: see
    Requests.ended_ns). Bytes and access times cover requests that completed without an error.
    """
    moving = requests.transfers
    issued, used = moving & requests.issued, moving & requests.completed
    any_back = bool((requests.answered & moving).any())
    busy_s = busy_ns(requests.issue_ns[issued], requests.ended_ns(last_ns)[issued]) / 1e9 if any_back else None
    bandwidth = int(requests.length_bytes[used].sum()) / MIB / busy_s if busy_s else None
    latency_us, operation = requests.latency_us[used], requests.operation[used]
    by_operation = {
        f"{name}_access_time_us": mean(latency_us[operation == OPERATIONS.index(name)]) for name in ("read", "write")
    }
    spread = distribution(latency_us)
    return {
        "busy_s": busy_s,
        "bandwidth_mib_s": bandwidth,
        "access_time_us": spread["mean"],
        "score": score(bandwidth, spread["mean"]),
        "score_formula": SCORE_FORMULA,
        **by_operation,
        "latency_us": spread,
    }


def response(requests: Requests) -> dict[str, float | None] | None:
    """Return the distribution of the time in us from when a read or write was due to its completion.

    Access time begins at the issue, so it hides what a request waited for a full queue or a stalled engine (Schroeder,
    Wierman and Harchol-Balter, Open Versus Closed, NSDI 2006). Only for a schedule whose deadlines do not depend on
    completions. None without such times.
    """
    taken_ns = requests.complete_ns - requests.times_ns("deadline_ns")
    used = requests.transfers & requests.completed & ~np.isnan(taken_ns)
    return distribution(taken_ns[used] / 1000) if used.any() else None


def compare_with_trace(requests: Requests) -> dict[str, Any]:
    """Compare the latency of reads and writes with that in the trace.

    Latency in the trace is from queueing to completion. A write with a preflush counts from the issue of its flush, in
    the replay as in the trace. `faster_pct` is the share of requests that were faster than in the trace;
    `access_time_ratio` is replay by trace.
    """
    then_us, now_us = requests.times_ns("trace_latency_ns") / 1000, requests.latency_us
    with_flush, issue_ns = np.flatnonzero(requests.behind_preflush), requests.issue_ns
    now_us[with_flush] += (issue_ns[with_flush] - issue_ns[with_flush - 1]) / 1000  # NaN if it was never issued
    used = requests.transfers & requests.completed & ~np.isnan(then_us) & ~np.isnan(now_us)
    now_us, then_us = now_us[used], then_us[used]
    faster_pct = 100 * float((now_us < then_us).mean()) if now_us.size else None
    now, then = distribution(now_us), distribution(then_us)
    return {
        "requests": len(now_us),
        "replay_latency_us": now,
        "trace_latency_us": then,
        "access_time_ratio": now["mean"] / then["mean"] if now["mean"] is not None and then["mean"] else None,
        "faster_pct": faster_pct,
    }


MEAN_FACTOR, MOST_FACTOR = 2, 4
"""A timed replay is overloaded if both its mean and its largest depth exceed those of the trace by more than these
factors (ours). A slightly slower drive or one long pause causes only one of both."""
Depths = dict[str, dict[str, float | int | None]]


def in_flight(requests: Requests, last_ns: float | None = None) -> Depths:
    """Return {"replay": {most, mean}, "trace": {most, mean}}: requests in flight, None if times are not known.

    All operations count. The mean covers the time with at least one request in flight, because a replay may shorten
    pauses. A request that never completed is in flight to the end (`last_ns`: see Requests.ended_ns); a request that
    never completed in the trace is left out.
    """
    queue_ns = requests.times_ns("trace_queue_ns")
    return {
        "replay": _depth(requests.issue_ns, requests.ended_ns(last_ns)),
        "trace": _depth(queue_ns, queue_ns + requests.times_ns("trace_latency_ns")),
    }


def overloaded(depth: Depths) -> bool:
    """Say whether far more requests were in flight than in the trace; False if either is not known."""
    now, then = depth["replay"], depth["trace"]
    if now["most"] is None or then["most"] is None or now["mean"] is None or then["mean"] is None:
        return False
    return now["mean"] > MEAN_FACTOR * then["mean"] and now["most"] > MOST_FACTOR * then["most"]


def _depth(begin_ns: Floats, end_ns: Floats) -> dict[str, float | int | None]:
    known = ~np.isnan(begin_ns) & ~np.isnan(end_ns)
    begin_ns, end_ns = begin_ns[known], end_ns[known]
    if not begin_ns.size:
        return {"most": None, "mean": None}
    busy = busy_ns(begin_ns, end_ns)
    area = float((end_ns - begin_ns).sum())
    begin_ns, end_ns = np.sort(begin_ns), np.sort(end_ns)
    open_ = np.arange(1, len(begin_ns) + 1) - np.searchsorted(end_ns, begin_ns, side="right")
    return {"most": max(int(open_.max()), 1), "mean": area / busy if busy else None}
