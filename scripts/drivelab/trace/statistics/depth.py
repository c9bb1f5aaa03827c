"""Measure the exact depth: the number of requests with begin <= t < end."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.trace.statistics.requests import Requests

QUEUED = "SELECT queue_ns AS begin_ns, complete_ns AS end_ns FROM trace WHERE complete_ns IS NOT NULL"
_DISPATCHES = """
    CREATE TEMP TABLE dispatches AS
    SELECT min(dispatch_ns) AS begin_ns, max(complete_ns) AS end_ns, count(*) AS requests
    FROM trace WHERE dispatch_id IS NOT NULL AND dispatch_ns IS NOT NULL GROUP BY dispatch_id"""
_DISPATCHED = """
    SELECT dispatch_ns AS begin_ns, complete_ns AS end_ns FROM trace
    WHERE dispatch_id IS NULL AND dispatch_ns IS NOT NULL AND complete_ns IS NOT NULL
    UNION ALL SELECT begin_ns, end_ns FROM dispatches WHERE end_ns IS NOT NULL"""


def dispatched(requests: Requests) -> tuple[Depth, int | None]:
    """Return the depth from dispatch to completion, with merged requests as one, and how many requests were merged.

    The number is None if it is unknown.
    """
    requests.execute(_DISPATCHES)
    merged = requests.row("SELECT sum(requests - 1)::BIGINT AS requests FROM dispatches")["requests"]
    return Depth(requests, _DISPATCHED), merged


class Depth:
    """The depth of requests over time: `spans` is a query for their begins and ends, within the trace."""

    def __init__(self, requests: Requests, spans: str) -> None:
        self._intervals, self._duration_ns = requests.intervals, requests.times.duration_ns
        first_ns, last_ns, width_ns = requests.times.first_ns, requests.times.last_ns, self._intervals.width_ns
        self.known = bool(requests.row(f"SELECT count(*) AS spans FROM ({spans})")["spans"])
        """Whether there is any request with both times."""
        # A step of 0 at each edge cuts the depths into intervals.
        self._times = requests.rows(f"""
            WITH spans AS ({spans}), events AS (
                SELECT begin_ns AS at_ns, 1 AS step FROM spans UNION ALL SELECT end_ns, -1 FROM spans
                UNION ALL SELECT {first_ns} + {width_ns} * nth, 0 FROM range({self._intervals.count}) edges(nth)
            ), depths AS (
                SELECT at_ns, sum(step::DOUBLE) OVER (ROWS UNBOUNDED PRECEDING)::BIGINT AS depth,
                       least(lead(at_ns) OVER (), {last_ns}) AS until_ns
                FROM (SELECT * FROM events ORDER BY at_ns)
            )
            SELECT (at_ns - ({first_ns})) // {width_ns} AS nth, depth, sum(until_ns - at_ns)::BIGINT AS time_ns
            FROM depths WHERE until_ns > at_ns GROUP BY ALL ORDER BY depth, nth""").astype(np.int64)
        """Time at each depth in each interval."""

    @property
    def idle_ns(self) -> int:
        """Time with nothing in flight."""
        return int(self._times.loc[self._times["depth"] == 0, "time_ns"].sum())

    @property
    def total_ns(self) -> int:
        """Sum of the times of all requests."""
        return int((self._times["depth"] * self._times["time_ns"]).sum())

    def means(self) -> npt.NDArray[np.float64]:
        """Return the mean depth in each interval, NaN if unknown.

        The last instant of the trace counts with its duration; nothing is in flight then.
        """
        areas = (self._times["depth"] * self._times["time_ns"]).groupby(self._times["nth"]).sum()
        return self._in_intervals(areas) / np.diff(self._intervals.edges_ns())

    def largest(self) -> npt.NDArray[np.float64]:
        """Return the largest depth in each interval, NaN if unknown."""
        return self._in_intervals(self._times.groupby("nth")["depth"].max())

    def statistics(self) -> dict[str, float]:
        """Return mean, percentiles and largest depth of the whole trace; NaN if unknown."""
        mean = self.total_ns / self._duration_ns if self.known and self._duration_ns else math.nan
        largest = float(self._times["depth"].max()) if len(self._times) else 0.0
        return {
            "mean": mean,
            "p50": self._percentile(50),
            "p99": self._percentile(99),
            "max": largest if self.known else math.nan,
        }

    def _in_intervals(self, values: pd.Series) -> npt.NDArray[np.float64]:
        column = values.reindex(range(self._intervals.count), fill_value=0).to_numpy(np.float64)
        return column if self.known else np.full(self._intervals.count, np.nan)

    def _percentile(self, percent: float) -> float:
        """Return the depth not exceeded for `percent` % of the time; NaN if unknown."""
        times = self._times.groupby("depth")["time_ns"].sum()
        if not self.known or times.empty:
            return math.nan
        if 0 not in times.index:
            times = pd.concat([pd.Series([0], [0]), times])
        passed = times.cumsum().to_numpy()
        return float(times.index[np.searchsorted(passed, percent / 100 * float(passed[-1]) - 0.5)])
