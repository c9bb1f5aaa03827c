"""Measure the exact depth: the number of requests with begin <= t < end.

Requests come almost in the order of their events, so following them batch by batch needs far less time and memory than
sorting all events, in SQL or elsewhere.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.trace.statistics.batch import UNKNOWN, Batch, Ints
from drivelab.trace.statistics.requests import Intervals, Requests

MOST_PENDING = 1 << 23
"""Most begins and ends in memory; with more, the depth is unknown."""
COLUMNS = ("queue_ns", "dispatch_ns", "complete_ns", "offset_bytes", "length_bytes", "dispatch_id")
_NONE = np.zeros(0, np.int64)


class Depth:
    """Depth over time, from the begins and ends of requests in batches."""

    def __init__(self, intervals: Intervals, duration_ns: int) -> None:
        self._intervals, self._duration_ns = intervals, duration_ns
        self._now_ns, self._depth = intervals.origin_ns, 0
        self._pending = _NONE, _NONE
        """Times of events, and their steps of the depth."""
        self._times = pd.Series(_NONE, _NONE)
        """Time at each depth in each interval; the index is the interval's number << 32 | depth."""
        self.known = False
        """Whether there were requests, and never too many in flight."""
        self._gave_up = False

    def add(self, begin_ns: Ints, end_ns: Ints, before_ns: int) -> None:
        """Add requests; no later request begins before `before_ns`."""
        self.known = (self.known or begin_ns.size > 0) and not self._gave_up
        if self._gave_up:
            return
        steps = (self._pending[1], np.ones(begin_ns.size, np.int64), np.full(end_ns.size, -1, np.int64))
        times_ns, all_steps = np.concatenate([self._pending[0], begin_ns, end_ns]), np.concatenate(steps)
        due = times_ns < before_ns
        self._advance(times_ns[due], all_steps[due], before_ns)
        self._pending = times_ns[~due], all_steps[~due]
        if self._pending[0].size > MOST_PENDING:
            self._gave_up, self.known, self._pending = True, False, (_NONE, _NONE)

    def finish(self, end_ns: int) -> None:
        """Finish after the last batch; the trace ends at `end_ns`."""
        self._advance(*self._pending, end_ns)

    def _advance(self, times_ns: Ints, steps: Ints, until_ns: int) -> None:
        """Follow the depth through events before `until_ns`; a step of 0 at each edge cuts it into intervals."""
        edges_ns = self._intervals.origin_ns + self._intervals.edges_ns()
        edges_ns = edges_ns[(edges_ns > self._now_ns) & (edges_ns < until_ns)]
        times_ns = np.concatenate([[self._now_ns], edges_ns, times_ns])
        steps = np.concatenate([np.zeros(1 + edges_ns.size, np.int64), steps])
        order = np.argsort(times_ns, kind="stable")
        times_ns, depth = times_ns[order], self._depth + np.cumsum(steps[order])
        span_ns = np.diff(times_ns, append=until_ns)
        lasts = span_ns > 0
        keys = self._intervals.number(times_ns[lasts]) << 32 | depth[lasts]
        self._times = pd.concat([self._times, pd.Series(span_ns[lasts], keys)]).groupby(level=0).sum()
        self._depth, self._now_ns = int(depth[-1]), max(until_ns, self._now_ns)

    @property
    def idle_ns(self) -> int:
        """Time with nothing in flight."""
        return int(self._times[self._depths == 0].sum())

    @property
    def _depths(self) -> Ints:
        return np.asarray(self._times.index.to_numpy(np.int64) & 0xFFFFFFFF, np.int64)

    def in_intervals(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the mean and the largest depth in each interval, NaN if unknown.

        The last instant of the trace counts with its duration; nothing is in flight then.
        """
        nth = self._times.index.to_numpy(np.int64) >> 32
        areas, largest = (np.zeros(self._intervals.count) for _ in range(2))
        np.add.at(areas, nth, self._times.to_numpy() * self._depths.astype(np.float64))
        np.maximum.at(largest, nth, self._depths)
        unknown = 0.0 if self.known else np.nan
        return areas / np.diff(self._intervals.edges_ns()) + unknown, largest + unknown

    def statistics(self) -> dict[str, float]:
        """Return mean, percentiles and largest depth of the whole trace; NaN if unknown."""
        times = pd.concat([pd.Series([0], [0]), self._times.groupby(self._depths).sum()]).groupby(level=0).sum()
        if not self.known:
            return dict.fromkeys(("mean", "p50", "p99", "max"), math.nan)
        area = sum(int(depth) * int(time_ns) for depth, time_ns in times.items())
        passed = times.cumsum().to_numpy()
        p50, p99 = (
            float(times.index[np.searchsorted(passed, percent / 100 * float(passed[-1]) - 0.5)])
            if self._duration_ns
            else math.nan
            for percent in (50, 99)
        )
        mean = area / self._duration_ns if self._duration_ns else math.nan
        return {"mean": mean, "p50": p50, "p99": p99, "max": float(times.index.max())}


class _Dispatches:
    """Join the requests of a dispatch and add them to a Depth.

    All requests of a dispatch are queued before it, so it is complete once the trace passes its time.
    """

    def __init__(self, depth: Depth) -> None:
        self._depth = depth
        self._waiting: tuple[Ints, Ints, Ints] = (_NONE, _NONE, _NONE)
        self._identified = self._merged = 0

    @property
    def merged(self) -> int | None:
        """Requests dispatched as part of another; None if unknown."""
        return self._merged if self._identified else None

    def add(self, batch: Batch) -> None:
        dispatched = batch.dispatch_ns != UNKNOWN
        columns = (batch.dispatch_ns, batch.complete_ns, batch.ints("dispatch_id"))
        waiting = [np.concatenate([old, new[dispatched]]) for old, new in zip(self._waiting, columns, strict=True)]
        self._waiting = waiting[0], waiting[1], waiting[2]
        self.release(int(batch.queue_ns[-1]))

    def release(self, before_ns: int, *, everything: bool = False) -> None:
        """Add the dispatches before a time, or all."""
        dispatch_ns, complete_ns, number = self._waiting
        whole = (dispatch_ns < before_ns) | everything
        self._waiting = dispatch_ns[~whole], complete_ns[~whole], number[~whole]
        dispatch_ns, complete_ns, number = dispatch_ns[whole], complete_ns[whole], number[whole]
        known = number != UNKNOWN
        order = np.argsort(number[known], kind="stable")
        begins = np.flatnonzero(np.diff(number[known][order], prepend=UNKNOWN) != 0)
        self._identified += int(known.sum())
        self._merged += int(known.sum()) - begins.size
        if begins.size:
            first = np.minimum.reduceat(dispatch_ns[known][order], begins)
            last = np.maximum.reduceat(complete_ns[known][order], begins)
            dispatch_ns = np.concatenate([dispatch_ns[~known], first])
            complete_ns = np.concatenate([complete_ns[~known], last])
        ended = complete_ns != UNKNOWN
        self._depth.add(dispatch_ns[ended], complete_ns[ended], before_ns)


def depths(requests: Requests) -> tuple[Depth, Depth, int | None]:
    """Return the depth from queueing to completion, from dispatch to completion, and the number of merged requests.

    Merged requests are dispatched once. Their number is None if it is unknown.
    """
    last_ns = requests.times.last_ns
    in_flight, at_drive = (Depth(requests.intervals, requests.times.duration_ns) for _ in range(2))
    dispatches = _Dispatches(at_drive)
    for batch in map(Batch, requests.file.batches(COLUMNS)):
        completed = batch.complete_ns != UNKNOWN
        in_flight.add(batch.queue_ns[completed], batch.complete_ns[completed], int(batch.queue_ns[-1]))
        dispatches.add(batch)
    dispatches.release(last_ns, everything=True)
    for depth in (in_flight, at_drive):
        depth.finish(last_ns)
    return in_flight, at_drive, dispatches.merged
