"""Columns of a replay's requests as arrays, and what many values are summed up to.

A frame of requests has columns of drivelab.replay.outcome.OUTCOME, one row per request in the order of the schedule;
a time that is not known is NaN (float64 holds every ns of the first 104 days).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.trace.schema import OPERATIONS

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int8]

PERCENTS = (50.0, 90.0, 99.0, 99.9, 99.99, 99.999)


def times_ns(requests: pd.DataFrame, column: str) -> Floats:
    """A column of times, NaN where it is null; shape (rows,)."""
    found = requests[column]
    if found.dtype == np.float64:
        return np.asarray(found.to_numpy(), np.float64)  # as it is: a copy of 10 million is 80 MB
    return np.asarray(found.to_numpy(np.float64, na_value=np.nan), np.float64)


def operation_codes(requests: pd.DataFrame) -> Codes:
    """Place of each request's operation in OPERATIONS; shape (rows,)."""
    return np.asarray(pd.Categorical(requests["operation"], categories=OPERATIONS).codes, np.int8)


def transfers(requests: pd.DataFrame) -> Flags:
    """Reads and writes; shape (rows,)."""
    return operation_codes(requests) <= OPERATIONS.index("write")


def answered(requests: pd.DataFrame) -> Flags:
    """Requests that came back, well or with an error; shape (rows,)."""
    return ~np.isnan(times_ns(requests, "complete_ns")) & ~np.isnan(times_ns(requests, "issue_ns"))


def ended_ns(requests: pd.DataFrame, last_ns: float | None = None) -> Floats:
    """When each issued request ended, NaN for what was not issued; shape (rows,).

    What never came back was in flight to the end of the replay: `last_ns` (the engine's last sign of life), or the
    last issue or completion where that is later. Columns: issue_ns, complete_ns.
    """
    issue_ns, end_ns = times_ns(requests, "issue_ns"), times_ns(requests, "complete_ns").copy()
    lost = ~np.isnan(issue_ns) & np.isnan(end_ns)
    if lost.any():
        known = (float(np.nan_to_num(times).max()) for times in (issue_ns, end_ns))
        end_ns[lost] = max(*known, last_ns or 0.0)
    return end_ns


def completed(requests: pd.DataFrame) -> Flags:
    """Requests that came back without an error; shape (rows,)."""
    return answered(requests) & np.asarray(requests["error"].to_numpy() == 0, np.bool_)


def latencies_us(requests: pd.DataFrame) -> Floats:
    """From issue to completion, NaN for what did not come back; shape (rows,)."""
    taken = times_ns(requests, "complete_ns") - times_ns(requests, "issue_ns")
    taken /= 1000
    return taken


def behind_preflush(requests: pd.DataFrame) -> Flags:
    """Writes whose preflush is the request just before them in the schedule; shape (rows,)."""
    found = np.zeros(len(requests), np.bool_)
    found[1:] = requests["preflush"].to_numpy(np.bool_)[:-1]
    return found


def trace_latencies_us(requests: pd.DataFrame) -> Floats:
    """From queueing to completion in the trace, NaN where it does not tell; shape (rows,).

    NaN also for a write with a preflush, which is two requests here: the trace's time is that of both.
    """
    taken = times_ns(requests, "trace_latency_ns") / 1000
    taken[behind_preflush(requests)] = np.nan
    return taken


def percentile_name(percent: float) -> str:
    """`p50`, `p999` for 99.9, `p99999` for 99.999."""
    return f"p{percent:g}".replace(".", "")


def percentiles(ordered: npt.NDArray[np.float64], percents: Sequence[float]) -> list[float | None]:
    """Values that so many percent of `ordered` (ascending, shape (n,)) do not exceed: nearest rank, so measured ones.

    None where fewer than 1 in 1/(1 - p) values can lie above: 100 are needed for 99 %, 100 000 for 99.999 %.
    """
    return [_nearest_rank(ordered, round(1000 * percent)) for percent in percents]


def _nearest_rank(ordered: npt.NDArray[np.float64], thousandths: int) -> float | None:
    count = len(ordered)
    if not count or count * (100_000 - thousandths) < 100_000:
        return None
    return float(ordered[-(-thousandths * count // 100_000) - 1])


def distribution(values: npt.NDArray[np.float64], percents: Sequence[float] = PERCENTS) -> dict[str, float | None]:
    """Mean, percentiles by their names, and max of values without NaN, shape (n,), in their unit; None for none.

    Sorts `values` themselves: there may be many of them.
    """
    values.sort()
    found = zip(percents, percentiles(values, percents), strict=True)
    return {
        "mean": mean(values),
        **{percentile_name(percent): value for percent, value in found},
        "max": float(values[-1]) if values.size else None,
    }


def mean(values: npt.NDArray[np.float64]) -> float | None:
    """None for no values."""
    return float(values.mean()) if values.size else None
