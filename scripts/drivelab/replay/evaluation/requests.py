"""Read the columns of a replay's requests as arrays, and summarise many values.

A frame of requests has columns of drivelab.replay.outcome.OUTCOME, one row per request in schedule order. An unknown
time is NaN (float64 holds every ns of the first 104 days).
"""

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


def times_ns(requests: pd.DataFrame, column: str) -> Floats:
    """Return a column of times, NaN where it is null; shape (rows,)."""
    times = requests[column]
    if times.dtype == np.float64:
        return np.asarray(times.to_numpy(), np.float64)  # without a copy, which is 80 MB for 10 million requests
    return np.asarray(times.to_numpy(np.float64, na_value=np.nan), np.float64)


def operation_codes(requests: pd.DataFrame) -> Codes:
    """Return the index of each request's operation in OPERATIONS; shape (rows,)."""
    return np.asarray(pd.Categorical(requests["operation"], categories=OPERATIONS).codes, np.int8)


def transfers(requests: pd.DataFrame) -> Flags:
    """Return which requests are reads or writes; shape (rows,)."""
    return operation_codes(requests) <= OPERATIONS.index("write")


def answered(requests: pd.DataFrame) -> Flags:
    """Return which requests completed, with or without an error; shape (rows,)."""
    return ~np.isnan(times_ns(requests, "complete_ns")) & ~np.isnan(times_ns(requests, "issue_ns"))


def ended_ns(requests: pd.DataFrame, last_ns: float | None = None) -> Floats:
    """Return when each issued request ended, NaN for requests not issued.

    Shape (rows,).
    A request that never completed was in flight to the end of the replay: `last_ns` (the engine's last sign of life),
    or the last issue or completion if that is later. Columns: issue_ns, complete_ns.
    """
    issue_ns, end_ns = times_ns(requests, "issue_ns"), times_ns(requests, "complete_ns").copy()
    lost = ~np.isnan(issue_ns) & np.isnan(end_ns)
    if lost.any():
        known = (float(np.nan_to_num(times).max()) for times in (issue_ns, end_ns))
        end_ns[lost] = max(*known, last_ns or 0.0)
    return end_ns


def completed(requests: pd.DataFrame) -> Flags:
    """Return which requests completed without an error; shape (rows,)."""
    return answered(requests) & np.asarray(requests["error"].to_numpy() == 0, np.bool_)


def latencies_us(requests: pd.DataFrame) -> Floats:
    """Return the time from issue to completion, else NaN; shape (rows,)."""
    taken = times_ns(requests, "complete_ns") - times_ns(requests, "issue_ns")
    taken /= 1000
    return taken


def behind_preflush(requests: pd.DataFrame) -> Flags:
    """Return which requests are writes right after their preflush; shape (rows,)."""
    flags = np.zeros(len(requests), np.bool_)
    flags[1:] = requests["preflush"].to_numpy(np.bool_)[:-1]
    return flags


def trace_latencies_us(requests: pd.DataFrame) -> Floats:
    """Return the time from queueing to completion in the trace, NaN if unknown.

    Shape (rows,).
    Also NaN for a write with a preflush: it is two requests here, and the trace has only the time of both together.
    """
    taken = times_ns(requests, "trace_latency_ns") / 1000
    taken[behind_preflush(requests)] = np.nan
    return taken


def percentile_name(percent: float) -> str:
    """Return `p50` for 50, `p999` for 99.9, `p99999` for 99.999."""
    return f"p{percent:g}".replace(".", "")


def percentiles(ordered: npt.NDArray[np.float64], percents: Sequence[float]) -> list[float | None]:
    """Return percentiles of `ordered` (ascending, shape (n,)) by nearest rank.

    Each is a measured value.
    A percentile needs at least one value above it, else it is None: 99 % needs 100 values, 99.999 % needs 100 000.
    """
    return [_nearest_rank(ordered, round(1000 * percent)) for percent in percents]


def _nearest_rank(ordered: npt.NDArray[np.float64], thousandths: int) -> float | None:
    count = len(ordered)
    if not count or count * (100_000 - thousandths) < 100_000:
        return None
    return float(ordered[-(-thousandths * count // 100_000) - 1])


def distribution(values: npt.NDArray[np.float64], percents: Sequence[float] = PERCENTS) -> dict[str, float | None]:
    """Return mean, percentiles by name, and max of `values`, shape (n,), without NaN.

    The result is None for no values.
    Sorts `values` in place to save memory, as there may be many.
    """
    values.sort()
    by_percent = zip(percents, percentiles(values, percents), strict=True)
    return {
        "mean": mean(values),
        **{percentile_name(percent): value for percent, value in by_percent},
        "max": float(values[-1]) if values.size else None,
    }


def mean(values: npt.NDArray[np.float64]) -> float | None:
    """Return the mean, or None for no values."""
    return float(values.mean()) if values.size else None
