"""Compute the course of a replay in equal intervals, and the planned course."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.replay.evaluation.metrics import MIB
from drivelab.replay.evaluation.requests import Floats, Requests, percentiles

INTERVALS = 100
COLUMNS = (
    "begin_s", "end_s", "planned_requests", "issued_requests", "planned_bytes", "issued_bytes", "planned_iops", "iops",
    "planned_bandwidth_mib_s", "bandwidth_mib_s", "mean_latency_us", "trace_mean_latency_us", "issue_error_p50_us",
    "issue_error_p99_us", "planned_depth", "depth",
)  # fmt: skip


class _Axis:
    """Equal intervals from the start of a replay; the last one includes its end. What has no time is left out."""

    def __init__(self, end_ns: float, count: int) -> None:
        self.count, self.width_ns = count, max(end_ns, 1.0) / count
        self.edges_ns: Floats = np.arange(count + 1, dtype=np.float64) * self.width_ns

    def number(self, times: Floats) -> npt.NDArray[np.int32]:
        return np.minimum(times / self.width_ns, self.count - 1).astype(np.int32)

    def sums(self, times: Floats, weights: Floats | None = None) -> Floats:
        """Return the count, or the sum of weights, in each interval."""
        known = ~np.isnan(times)
        chosen = None if weights is None else weights[known]
        return np.bincount(self.number(times[known]), chosen, self.count).astype(np.float64)

    def means(self, times: Floats, values: Floats) -> Floats:
        """Return the mean of the known values in each interval."""
        known = ~np.isnan(values)
        with np.errstate(invalid="ignore"):
            return self.sums(times[known], values[known]) / self.sums(times[known])

    def percentiles(self, times: Floats, values: Floats) -> Floats:
        """Return the 50th and 99th percentile in each interval, shape (2, count); NaN with too few values."""
        known = ~np.isnan(values)
        number, values = self.number(times[known]), values[known]
        order = np.argsort(number, kind="stable")
        parts = np.split(values[order], np.cumsum(np.bincount(number, minlength=self.count))[:-1])
        return np.array([percentiles(np.sort(part), (50.0, 99.0)) for part in parts], np.float64).T

    def mean_depth(self, begin: Floats, end: Floats) -> Floats:
        """Return the mean number of open requests [begin, end) in each interval; NaN without any.

        Times beyond the axis are cut off.
        """
        known = ~np.isnan(begin) & ~np.isnan(end)
        if not known.any():
            return np.full(self.count, np.nan)
        balance, partial = np.zeros(self.count), np.zeros(self.count)
        for times, sign in ((begin[known], 1), (end[known], -1)):
            times = np.minimum(times, self.edges_ns[-1])
            number = self.number(times)
            balance += sign * np.bincount(number, minlength=self.count)
            partial += sign * np.bincount(number, self.edges_ns[number + 1] - times, self.count)
        open_before = np.concatenate([[0.0], np.cumsum(balance)[:-1]])
        return np.maximum(open_before + partial / self.width_ns, 0)


def over_time(requests: Requests, intervals: int = INTERVALS) -> pd.DataFrame:
    """Return the course of a replay in equal intervals: rows of COLUMNS.

    The intervals span from the start to the last issue, deadline or completion.
    Planned requests count in the interval of their deadline, issued requests in that of their issue. Latencies and
    issue errors are of requests issued in the interval. Bytes, bandwidth and IOPS cover reads and writes; requests and
    depths cover all operations. `planned_depth` assumes that each request is issued at its deadline and takes as long
    as in the trace. Without deadlines (as soon as possible), all planned columns are NaN. Empty without any times.
    """
    due_ns, issue_ns, complete_ns = requests.times_ns("deadline_ns"), requests.issue_ns, requests.complete_ns
    if np.isnan(due_ns).all() and np.isnan(issue_ns).all():
        return pd.DataFrame(columns=list(COLUMNS), dtype=np.float64)
    axis = _Axis(max(float(np.nan_to_num(times).max()) for times in (due_ns, issue_ns, complete_ns)), intervals)
    width_s, moving = axis.width_ns / 1e9, requests.transfers
    size_bytes = np.where(moving, requests.length_bytes, 0).astype(np.float64)
    columns: dict[str, Floats] = {"begin_s": axis.edges_ns[:-1] / 1e9, "end_s": axis.edges_ns[1:] / 1e9}
    for stage, prefix, times in (("planned", "planned_", due_ns), ("issued", "", issue_ns)):
        unknown = np.nan if np.isnan(times).all() else 0.0
        columns[f"{stage}_requests"] = axis.sums(times) + unknown
        columns[f"{stage}_bytes"] = axis.sums(times, size_bytes) + unknown
        columns[f"{prefix}iops"] = axis.sums(times[moving]) / width_s + unknown
        columns[f"{prefix}bandwidth_mib_s"] = columns[f"{stage}_bytes"] / MIB / width_s
    good = moving & requests.completed
    columns["mean_latency_us"] = axis.means(issue_ns[good], requests.latency_us[good])
    columns["trace_mean_latency_us"] = axis.means(issue_ns[good], requests.trace_latency_us[good])
    columns["issue_error_p50_us"], columns["issue_error_p99_us"] = axis.percentiles(issue_ns, requests.late_us)
    columns["planned_depth"] = axis.mean_depth(due_ns, due_ns + requests.times_ns("trace_latency_ns"))
    columns["depth"] = axis.mean_depth(issue_ns, complete_ns)
    return pd.DataFrame(columns)[list(COLUMNS)]
