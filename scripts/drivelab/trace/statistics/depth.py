"""Measure the exact depth: the number of requests with begin <= t < end."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from drivelab.trace.statistics.batch import UNKNOWN, Batch, Intervals, Ints
from drivelab.trace.statistics.bins import whole_sum

MOST_PENDING = 1 << 22
"""Most pending ends. Beyond this limit, only mean depths are computed."""
DEEPEST = 1 << 16
"""Larger depths count as this one in the time at each depth."""


class Depth:
    """Depth over time, from the begins and ends of requests in batches."""

    def __init__(self, intervals: Intervals) -> None:
        self._intervals = intervals
        self._balance = np.zeros(intervals.count, np.int64)
        self._partial = np.zeros(intervals.count)
        self._pending = (np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._now_ns = intervals.origin_ns
        self._depth = 0
        self._time_ns = np.zeros(DEEPEST + 1, np.int64)
        self._largest = np.zeros(intervals.count, np.int64)
        self.counted = 0
        self.total_ns = 0
        """Sum of the in-flight times of all requests."""
        self.gave_up = False

    def add(self, begin_ns: Ints, end_ns: Ints, before_ns: int) -> None:
        """Add requests; no later request begins before `before_ns`."""
        self.counted += begin_ns.size
        self.total_ns += whole_sum(end_ns - begin_ns)
        for times, sign in ((begin_ns, 1), (end_ns, -1)):
            number = self._intervals.number(times)
            rest = self._intervals.width_ns - (times - self._intervals.origin_ns - number * self._intervals.width_ns)
            self._balance += sign * np.bincount(number, minlength=self._intervals.count)
            self._partial += sign * np.bincount(number, weights=rest, minlength=self._intervals.count)
        if self.gave_up:
            return
        begins = np.concatenate([self._pending[0], begin_ns])
        ends = np.concatenate([self._pending[1], end_ns])
        self._advance(begins[begins < before_ns], ends[ends < before_ns], before_ns)
        self._pending = begins[begins >= before_ns], ends[ends >= before_ns]
        self.gave_up = self._pending[0].size + self._pending[1].size > MOST_PENDING

    def finish(self, end_ns: int) -> None:
        """Finish after the last batch; the trace ends at `end_ns`."""
        if not self.gave_up:
            self._advance(*self._pending, end_ns)

    def mean(self) -> npt.NDArray[np.float64]:
        """Return the mean depth in each interval, shape (count,).

        The last instant of the trace counts with its duration.
        """
        before = np.concatenate([[0], np.cumsum(self._balance)[:-1]])
        area = before * float(self._intervals.width_ns) + self._partial
        edges = self._intervals.edges_ns()
        # Nothing is in flight in the part of the last interval beyond the trace.
        return np.asarray(np.maximum(area, 0) / np.diff(edges), np.float64)

    def largest(self) -> Ints | None:
        """Return the largest depth in each interval, or None after MOST_PENDING."""
        return None if self.gave_up else self._largest

    def time_ns(self) -> Ints | None:
        """Return the time at each depth from 0 to DEEPEST, or None after MOST_PENDING."""
        return None if self.gave_up else self._time_ns

    def percentile(self, percent: float) -> float:
        """Return the depth not exceeded for `percent` % of the time; NaN if unknown."""
        time_ns = self.time_ns()
        if time_ns is None or not time_ns.sum():
            return math.nan
        passed = np.cumsum(time_ns)
        return float(np.searchsorted(passed, percent / 100 * float(passed[-1]) - 0.5))

    def _advance(self, begins: Ints, ends: Ints, until_ns: int) -> None:
        """Follow the depth through all events before `until_ns`."""
        times = np.concatenate([begins, ends])
        steps = np.concatenate([np.ones(begins.size, np.int64), np.full(ends.size, -1, np.int64)])
        order = np.argsort(times, kind="stable")
        times, depth = times[order], self._depth + np.cumsum(steps[order])
        lasting = np.concatenate([times[1:] != times[:-1], [True]]) if times.size else np.zeros(0, np.bool_)
        begin_ns = np.concatenate([[self._now_ns], times[lasting]])
        depth = np.concatenate([[self._depth], depth[lasting]])
        span_ns = np.diff(np.append(begin_ns, max(until_ns, int(begin_ns[-1]))))
        lasts = span_ns > 0
        begin_ns, shown, span_ns = begin_ns[lasts], depth[lasts], span_ns[lasts]
        np.add.at(self._time_ns, np.minimum(shown, DEEPEST), span_ns)
        first = self._intervals.number(begin_ns)
        np.maximum.at(self._largest, first, shown)
        last = self._intervals.number(begin_ns + span_ns - 1)
        for place in np.flatnonzero(last > first):
            reached = self._largest[first[place] + 1 : last[place] + 1]
            np.maximum(reached, shown[place], out=reached)
        self._depth, self._now_ns = int(depth[-1]), max(until_ns, self._now_ns)


_NONE = np.zeros(0, np.int64)


class Dispatches:
    """Join the requests of a dispatch and add them to a Depth.

    All requests of a dispatch are queued before it, so it is complete once the trace passes its time.
    """

    def __init__(self, depth: Depth) -> None:
        self.depth = depth
        self._waiting: tuple[Ints, Ints, Ints] = (_NONE, _NONE, _NONE)
        self.identified = 0
        """Requests with a known dispatch number."""
        self.merged = 0
        """Those of them dispatched as part of another."""
        self.left_out = 0
        """Requests without a dispatch or without a completion."""

    def add(self, batch: Batch) -> None:
        dispatched = batch.dispatch_ns != UNKNOWN
        usable = dispatched & (batch.complete_ns != UNKNOWN)
        self.left_out += int((~usable).sum())
        columns = (batch.dispatch_ns, batch.complete_ns, batch.ints("dispatch_id"))
        waiting = [np.concatenate([old, new[dispatched]]) for old, new in zip(self._waiting, columns, strict=True)]
        self._waiting = waiting[0], waiting[1], waiting[2]
        self._release(int(batch.queue_ns[-1]), everything=False)

    def finish(self, end_ns: int) -> None:
        """Finish after the last batch; the trace ends at `end_ns`."""
        self._release(end_ns, everything=True)
        self.depth.finish(end_ns)

    def _release(self, before_ns: int, *, everything: bool) -> None:
        dispatch_ns, complete_ns, number = self._waiting
        whole = (dispatch_ns < before_ns) | everything
        self._waiting = dispatch_ns[~whole], complete_ns[~whole], number[~whole]
        dispatch_ns, complete_ns, number = dispatch_ns[whole], complete_ns[whole], number[whole]
        known = number != UNKNOWN
        order = np.argsort(number[known], kind="stable")
        begins = np.flatnonzero(np.diff(number[known][order], prepend=UNKNOWN) != 0)
        self.identified += int(known.sum())
        self.merged += int(known.sum()) - begins.size
        if begins.size:
            first = np.minimum.reduceat(dispatch_ns[known][order], begins)
            last = np.maximum.reduceat(complete_ns[known][order], begins)
            dispatch_ns = np.concatenate([dispatch_ns[~known], first])
            complete_ns = np.concatenate([complete_ns[~known], last])
        ended = complete_ns != UNKNOWN
        self.depth.add(dispatch_ns[ended], complete_ns[ended], before_ns)
