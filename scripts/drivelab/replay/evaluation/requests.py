"""Read the requests of a replay as arrays, and summarise many values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.trace.parquet_schema import OPERATIONS

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int8]

PERCENTS = (50.0, 90.0, 99.0, 99.9, 99.99, 99.999)


class Requests:
    """The requests of a replay as arrays of shape (rows,), in schedule order.

    `frame` has columns of drivelab.replay.outcome.OUTCOME. An unknown time is NaN (float64 holds every ns of the first
    104 days). Arrays are computed when they are used, because there may be many requests.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    def __len__(self) -> int:
        return len(self.frame)

    def times_ns(self, column: str) -> Floats:
        """Return a column of times, without a copy if the frame comes from `read_outcome`."""
        times = self.frame[column]
        if times.dtype == np.float64:
            return np.asarray(times.to_numpy(), np.float64)
        return np.asarray(times.to_numpy(np.float64, na_value=np.nan), np.float64)

    @property
    def issue_ns(self) -> Floats:
        return self.times_ns("issue_ns")

    @property
    def complete_ns(self) -> Floats:
        return self.times_ns("complete_ns")

    @property
    def issued(self) -> Flags:
        return ~np.isnan(self.issue_ns)

    @property
    def late_us(self) -> Floats:
        """Time from deadline to issue; NaN without either."""
        return (self.issue_ns - self.times_ns("deadline_ns")) / 1000

    @property
    def latency_us(self) -> Floats:
        """Time from issue to completion; NaN without either."""
        return (self.complete_ns - self.issue_ns) / 1000

    @property
    def operation(self) -> Codes:
        """Index of each request's operation in OPERATIONS."""
        return np.asarray(pd.Categorical(self.frame["operation"], categories=OPERATIONS).codes, np.int8)

    @property
    def length_bytes(self) -> npt.NDArray[np.int64]:
        return np.asarray(self.frame["length_bytes"].to_numpy(np.int64), np.int64)

    @property
    def transfers(self) -> Flags:
        """Reads and writes."""
        return self.operation <= OPERATIONS.index("write")

    @property
    def answered(self) -> Flags:
        """Requests that completed, with or without an error."""
        return ~np.isnan(self.complete_ns) & self.issued

    @property
    def completed(self) -> Flags:
        """Requests that completed without an error."""
        return self.answered & np.asarray(self.frame["error"].to_numpy() == 0, np.bool_)

    @property
    def behind_preflush(self) -> Flags:
        """Writes right after their preflush."""
        flags = np.zeros(len(self), np.bool_)
        flags[1:] = self.frame["preflush"].to_numpy(np.bool_)[:-1]
        return flags

    @property
    def trace_latency_us(self) -> Floats:
        """Time from queueing to completion in the trace.

        NaN also for a write with a preflush: it is two requests here, and the trace has the time of both together.
        """
        return np.where(self.behind_preflush, np.nan, self.times_ns("trace_latency_ns") / 1000)

    def ended_ns(self, last_ns: float | None = None) -> Floats:
        """Return when each issued request ended.

        A request that never completed was in flight to the end of the replay: `last_ns` (the engine's last sign of
        life), or the last issue or completion if that is later.
        """
        issue_ns, complete_ns = self.issue_ns, self.complete_ns
        lost = self.issued & np.isnan(complete_ns)
        if not lost.any():
            return complete_ns
        end_ns = max(float(np.nanmax(issue_ns)), float(np.nan_to_num(complete_ns).max()), last_ns or 0.0)
        return np.where(lost, end_ns, complete_ns)


def percentile_name(percent: float) -> str:
    """Return `p50` for 50, `p999` for 99.9, `p99999` for 99.999."""
    return f"p{percent:g}".replace(".", "")


def percentiles(ordered: Floats, percents: Sequence[float]) -> list[float | None]:
    """Return percentiles of `ordered` (ascending, shape (n,)) by nearest rank.

    Each is a measured value.
    A percentile needs at least one value above it, else it is None: 99 % needs 100 values, 99.999 % needs 100 000.
    """
    return [_nearest_rank(ordered, round(1000 * percent)) for percent in percents]


def _nearest_rank(ordered: Floats, thousandths: int) -> float | None:
    count = len(ordered)
    if not count or count * (100_000 - thousandths) < 100_000:
        return None
    return float(ordered[-(-thousandths * count // 100_000) - 1])


def distribution(values: Floats, percents: Sequence[float] = PERCENTS) -> dict[str, float | None]:
    """Return mean, percentiles by name, and max of `values`, shape (n,), without NaN; None for no values.

    Sorts `values` in place to save memory, as there may be many.
    """
    values.sort()
    by_percent = zip(percents, percentiles(values, percents), strict=True)
    return {
        "mean": mean(values),
        **{percentile_name(percent): value for percent, value in by_percent},
        "max": float(values[-1]) if values.size else None,
    }


def mean(values: Floats) -> float | None:
    """Return the mean, or None for no values."""
    return float(values.mean()) if values.size else None
