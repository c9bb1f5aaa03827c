"""Turn times in the trace into deadlines after the start of a replay."""

from __future__ import annotations

import numpy as np

from drivelab.core.errors import UserError
from drivelab.plan.replay_choice import MOST_IN_FLIGHT, ReplayChoice, TimingChoice
from drivelab.replay.survey import LONGEST_NS
from drivelab.trace.statistics.batch import UNKNOWN, Ints, Times


class Clock:
    """Deadlines of requests in arrival order.

    Raises UserError when a factor makes the schedule longer than 64 bits can count.
    """

    def __init__(self, choice: TimingChoice, times: Times) -> None:
        self._choice, self._first_ns = choice, times.first_ns
        self._last_ns, self._deadline_ns = times.first_ns, 0
        self._cap_ns = LONGEST_NS if choice.idle_cap_s is None else max(1, round(choice.idle_cap_s * 1e9))
        self.idle_removed_ns = 0
        if choice.factor is not None and (times.duration_ns) * choice.factor >= LONGEST_NS:
            raise UserError(
                f"a factor of {choice.factor:g} makes the replay longer than a century; choose a smaller one"
            )

    def deadlines_ns(self, queue_ns: Ints) -> Ints:
        """Return the next requests' deadlines in ns after the start, ascending."""
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
        """Return the replay's delays from a completion to the request that waits."""
        if self._choice.mode == "asap":
            return np.zeros(think_ns.size, np.int64)
        return np.minimum(self._scaled(think_ns), self._cap_ns)

    def _scaled(self, span_ns: Ints) -> Ints:
        return span_ns if self._choice.factor is None else np.rint(span_ns * self._choice.factor).astype(np.int64)


class Depths:
    """The depth limit of each request.

    The limit is the trace's own depth for timing `asap` without a depth, and for dependencies in the whole trace.
    Raises UserError when the limit is the trace's own depth and the trace has no completions.
    """

    def __init__(self, choice: ReplayChoice, times: Times) -> None:
        timing = choice.timing
        as_traced = timing.depth is None and (timing.mode == "asap" or choice.dependencies == "trace")
        self._fixed = None if as_traced else timing.depth or 0
        self._ends = np.zeros(0, np.int64)
        if self._fixed is None and not times.completed:
            raise UserError("the trace has no completions, so its queue depth is unknown; set --depth")

    def of(self, queue_ns: Ints, complete_ns: Ints) -> Ints:
        """Return each request's depth limit: 0 for none, else at most MOST_IN_FLIGHT.

        The trace's own depth counts the request and all earlier queued requests not yet completed. A request without a
        completion counts only for itself.
        """
        if self._fixed is not None:
            return np.full(queue_ns.size, self._fixed)
        known = complete_ns != UNKNOWN
        begun = np.cumsum(known) - known + self._ends.size
        # A request that ended at its queue time is in flight for those queued right after it.
        ends = np.where(known, np.maximum(complete_ns, queue_ns + 1), UNKNOWN)[known]
        self._ends = np.sort(np.concatenate([self._ends, ends]))
        ended = np.searchsorted(self._ends, queue_ns, side="right")
        if queue_ns.size:
            self._ends = self._ends[ended[-1] :]
        return np.asarray(np.minimum(begun - ended + 1, MOST_IN_FLIGHT), np.int64)
