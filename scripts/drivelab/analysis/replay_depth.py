"""How many requests a replay had in flight, beside how many the trace had."""

from __future__ import annotations

import numpy as np
import pandas as pd

from drivelab.analysis.replay_metrics import busy_ns
from drivelab.analysis.replay_requests import Floats, ended_ns, times_ns

MEAN_FACTOR, MOST_FACTOR = 2, 4
"""A timed replay is overloaded if it had on average more than so many times as many in flight as the trace had, and
at most more than so many times as many (ours): either alone is what a somewhat slower drive or one long pause does."""


def in_flight(requests: pd.DataFrame, last_ns: float | None = None) -> dict[str, dict[str, float | int | None]]:
    """`replay` and `trace`, each {most, mean}: requests of all operations, null where their times are not known.

    The mean is over the time with at least one in flight, so that pauses, which a replay may shorten, do not count.
    What never came back is in flight to the end (replay_requests.ended_ns, which has `last_ns`); a request of the
    trace that never completed there is left out. Columns: issue_ns, complete_ns, trace_queue_ns, trace_latency_ns.
    """
    queue_ns = times_ns(requests, "trace_queue_ns")
    return {
        "replay": _depth(times_ns(requests, "issue_ns"), ended_ns(requests, last_ns)),
        "trace": _depth(queue_ns, queue_ns + times_ns(requests, "trace_latency_ns")),
    }


def overloaded(depth: dict[str, dict[str, float | int | None]]) -> bool:
    """Whether far more were in flight than in the trace; False where either is not known."""
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
