"""Compare the number of requests in flight in a replay and in its trace."""

from __future__ import annotations

import numpy as np
import pandas as pd

from drivelab.analysis.replay_metrics import busy_ns
from drivelab.analysis.replay_requests import Floats, ended_ns, times_ns

MEAN_FACTOR, MOST_FACTOR = 2, 4
"""A timed replay is overloaded if both its mean and its largest depth exceed those of the trace by more than these
factors (ours). A slightly slower drive or one long pause causes only one of both."""


def in_flight(requests: pd.DataFrame, last_ns: float | None = None) -> dict[str, dict[str, float | int | None]]:
    """Return {"replay": {most, mean}, "trace": {most, mean}}: requests in flight.

    Values are None if times are not known.
    All operations count. The mean covers the time with at least one request in flight, because a replay may shorten
    pauses. A request that never completed is in flight to the end (`last_ns`: see replay_requests.ended_ns); a request
    that never completed in the trace is left out. Columns: issue_ns, complete_ns, trace_queue_ns, trace_latency_ns.
    """
    queue_ns = times_ns(requests, "trace_queue_ns")
    return {
        "replay": _depth(times_ns(requests, "issue_ns"), ended_ns(requests, last_ns)),
        "trace": _depth(queue_ns, queue_ns + times_ns(requests, "trace_latency_ns")),
    }


def overloaded(depth: dict[str, dict[str, float | int | None]]) -> bool:
    """Say whether far more requests were in flight than in the trace.

    The result is False if either is not known.
    """
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
