"""Compute the course of a replay in equal intervals, and the planned course."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.replay.evaluation.metrics import MIB
from drivelab.replay.evaluation.requests import (
    Floats,
    answered,
    completed,
    latencies_us,
    percentiles,
    times_ns,
    trace_latencies_us,
    transfers,
)
from drivelab.trace.parquet_schema import BATCH_ROWS

INTERVALS = 100
COLUMNS = (
    "begin_s", "end_s", "planned_requests", "issued_requests", "planned_bytes", "issued_bytes", "planned_iops", "iops",
    "planned_bandwidth_mib_s", "bandwidth_mib_s", "mean_latency_us", "trace_mean_latency_us", "issue_error_p50_us",
    "issue_error_p99_us", "planned_depth", "depth",
)  # fmt: skip


class _Axis:
    """Equal intervals from the start of a replay; the last one includes its end."""

    def __init__(self, end_ns: float, count: int) -> None:
        self.count, self.width_ns = count, max(end_ns, 1.0) / count
        self.edges_ns: Floats = np.arange(count + 1, dtype=np.float64) * self.width_ns
        self.edges_s: Floats = np.asarray(self.edges_ns / 1e9, np.float64)

    def number(self, times: Floats) -> npt.NDArray[np.int32]:
        return np.minimum(times / self.width_ns, self.count - 1).astype(np.int32)

    def sums(self, times: Floats, weights: Floats | None = None) -> Floats:
        """Return the count, or the sum of weights, in each interval.

        Times that are NaN are left out.
        """
        summed = np.zeros(self.count)
        for first in range(0, len(times), BATCH_ROWS):
            part = slice(first, first + BATCH_ROWS)
            known = ~np.isnan(times[part])
            chosen = None if weights is None else weights[part][known]
            summed += np.bincount(self.number(times[part][known]), chosen, self.count)
        return summed

    def mean_depth(self, begin: Floats, end: Floats) -> Floats:
        """Return the mean number of open requests [begin, end) in each interval.

        Times beyond the axis are cut off.
        """
        begin, end = (np.minimum(times, self.edges_ns[-1]) for times in (begin, end))
        balance, partial = np.zeros(self.count), np.zeros(self.count)
        for times, sign in ((begin, 1), (end, -1)):
            for first in range(0, len(times), BATCH_ROWS):
                part = times[first : first + BATCH_ROWS]
                number = self.number(part)
                balance += sign * np.bincount(number, minlength=self.count)
                partial += sign * np.bincount(number, self.edges_ns[number + 1] - part, self.count)
        open_before = np.concatenate([[0.0], np.cumsum(balance)[:-1]])
        return np.maximum(open_before + partial / self.width_ns, 0)


def over_time(requests: pd.DataFrame, intervals: int = INTERVALS) -> pd.DataFrame:
    """Return the course of a replay in equal intervals: rows of COLUMNS.

    The intervals span from the start to the last issue, deadline or completion.
    Planned requests count in the interval of their deadline, issued requests in that of their issue. Latencies and
    issue errors are of requests issued in the interval. Bytes, bandwidth and IOPS cover reads and writes; requests and
    depths cover all operations. `planned_depth` assumes that each request is issued at its deadline and takes as long
    as in the trace. Without deadlines (as soon as possible), all planned columns are NaN. Empty without any times.
    Columns: operation, preflush, length_bytes, deadline_ns, issue_ns, complete_ns, error, trace_latency_ns.
    """
    due_ns, issue_ns, complete_ns = (
        times_ns(requests, name) for name in ("deadline_ns", "issue_ns", "complete_ns")
    )  # fmt: skip
    if not (~np.isnan(due_ns)).any() and not (~np.isnan(issue_ns)).any():
        return pd.DataFrame(columns=list(COLUMNS), dtype=np.float64)
    axis = _Axis(max(float(np.nan_to_num(times).max()) for times in (due_ns, issue_ns, complete_ns)), intervals)
    width_s, moving = axis.width_ns / 1e9, transfers(requests)
    size = requests["length_bytes"].to_numpy(np.float64) * moving
    columns: dict[str, Floats] = {
        "begin_s": axis.edges_s[:-1],
        "end_s": axis.edges_s[1:],
    }
    for stage, prefix, times in (("planned", "planned_", due_ns), ("issued", "", issue_ns)):
        unknown = np.nan if np.isnan(times).all() else 0.0
        columns[f"{stage}_requests"] = axis.sums(times) + unknown
        columns[f"{stage}_bytes"] = axis.sums(times, size) + unknown
        columns[f"{prefix}iops"] = axis.sums(times[moving]) / width_s + unknown
        columns[f"{prefix}bandwidth_mib_s"] = columns[f"{stage}_bytes"] / MIB / width_s
    del size
    good = moving & completed(requests)
    columns["mean_latency_us"] = _means(axis, issue_ns[good], latencies_us(requests)[good])
    columns["trace_mean_latency_us"] = _means(axis, issue_ns[good], trace_latencies_us(requests)[good])
    columns["issue_error_p50_us"], columns["issue_error_p99_us"] = _percentiles(
        axis, issue_ns, (issue_ns - due_ns) / 1000
    )
    then_ns = due_ns + times_ns(requests, "trace_latency_ns")
    known = ~np.isnan(then_ns)
    columns["planned_depth"] = axis.mean_depth(due_ns[known], then_ns[known]) + (0.0 if known.any() else np.nan)
    back = answered(requests)
    columns["depth"] = axis.mean_depth(issue_ns[back], complete_ns[back]) + (0.0 if back.any() else np.nan)
    return pd.DataFrame(columns)[list(COLUMNS)]


def _means(axis: _Axis, at_ns: Floats, values: Floats) -> Floats:
    known = ~np.isnan(values)
    count = axis.sums(at_ns[known])
    with np.errstate(invalid="ignore"):
        return axis.sums(at_ns[known], values[known]) / count


def _percentiles(axis: _Axis, at_ns: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return the 50th and 99th percentile in each interval, NaN with too few values."""
    known = ~np.isnan(values)
    number, values = axis.number(at_ns[known]), values[known]
    order = np.argsort(number, kind="stable")
    parts = np.split(values[order], np.cumsum(np.bincount(number, minlength=axis.count))[:-1])
    by_interval = np.array([percentiles(np.sort(part), (50.0, 99.0)) for part in parts], np.float64)
    return by_interval[:, 0], by_interval[:, 1]
