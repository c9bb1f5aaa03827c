"""When requests are due: from their times in the trace to deadlines after the start of a replay."""

from __future__ import annotations

import numpy as np

from drivelab.errors import UserError
from drivelab.replay.choice import TimingChoice
from drivelab.replay.records import MOST_IN_FLIGHT
from drivelab.replay.survey import LONGEST_NS, Survey
from drivelab.trace.statistics.batch import UNKNOWN, Ints


class Clock:
    """Deadlines of requests in the order of their arrival.

    Raises UserError when a factor makes the schedule longer than 64 bits can count.
    """

    def __init__(self, choice: TimingChoice, found: Survey) -> None:
        self._choice, self._first_ns = choice, found.first_ns
        self._last_ns, self._deadline_ns = found.first_ns, 0
        self._cap_ns = LONGEST_NS if choice.idle_cap_s is None else max(1, round(choice.idle_cap_s * 1e9))
        self.idle_removed_ns = 0
        if choice.factor is not None and (found.last_ns - found.first_ns) * choice.factor >= LONGEST_NS:
            raise UserError(
                f"a factor of {choice.factor:g} makes the replay longer than a century; choose a smaller one"
            )

    def deadlines_ns(self, queue_ns: Ints) -> Ints:
        """Of the requests that arrive next, in ns after the start; they never fall."""
        if self._choice.mode == "asap":
            return np.zeros(queue_ns.size, np.int64)
        if self._choice.mode != "idle-capped":
            return self._scaled(queue_ns - self._first_ns)
        gaps = np.diff(queue_ns, prepend=self._last_ns)
        kept = np.minimum(gaps, self._cap_ns)
        self.idle_removed_ns += int((gaps - kept).sum())
        deadlines = self._deadline_ns + np.cumsum(kept)
        if deadlines.size:
            self._last_ns, self._deadline_ns = int(queue_ns[-1]), int(deadlines[-1])
        return deadlines

    def thinks_ns(self, think_ns: Ints) -> Ints:
        """Times between a completion and the request that waited for it, as they pass in the replay."""
        if self._choice.mode == "asap":
            return np.zeros(think_ns.size, np.int64)
        return np.minimum(self._scaled(think_ns), self._cap_ns)

    def _scaled(self, span_ns: Ints) -> Ints:
        return span_ns if self._choice.factor is None else np.rint(span_ns * self._choice.factor).astype(np.int64)


class Depths:
    """How many requests may be in flight when a request is issued.

    Raises UserError when it is to be the trace's own depth and the trace has no completions.
    """

    def __init__(self, choice: TimingChoice, found: Survey) -> None:
        self._fixed = choice.depth if choice.mode == "asap" else 0
        self._in_flight = np.zeros(0, np.int64)
        self._ends = np.zeros(0, np.int64)
        if self._fixed is None and not found.completed:
            raise UserError(
                "the trace has no completions, so it does not tell how many requests were in flight; give a --depth"
            )

    def of(self, queue_ns: Ints, complete_ns: Ints) -> Ints:
        """Of the requests that arrive next: 0 without a limit, at most MOST_IN_FLIGHT.

        The trace's own depth are the requests that were queued before in the order of the trace and not completed,
        and the request itself. One without a completion counts for itself only.
        """
        if self._fixed is not None:
            return np.full(queue_ns.size, self._fixed)
        known = complete_ns != UNKNOWN
        begun = np.cumsum(known) - known + self._ends.size
        # One that ended at once is in flight for what was queued behind it: later ones must not be counted as ended.
        ends = np.where(known, np.maximum(complete_ns, queue_ns + 1), UNKNOWN)[known]
        self._ends = np.sort(np.concatenate([self._ends, ends]))
        ended = np.searchsorted(self._ends, queue_ns, side="right")
        if queue_ns.size:
            self._ends = self._ends[ended[-1] :]
        return np.asarray(np.minimum(begun - ended + 1, MOST_IN_FLIGHT), np.int64)
