"""Measure how well a replay kept its schedule: times, order, duration."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.fio.cell_evidence import bin_indices, bin_value
from drivelab.replay.evaluation.requests import (
    Flags,
    Floats,
    completed,
    distribution,
    latencies_us,
    operation_codes,
    times_ns,
    trace_latencies_us,
)
from drivelab.trace.parquet_schema import BATCH_ROWS, OPERATIONS

ISSUE_PERCENTS = (50.0, 90.0, 95.0, 99.0, 99.9)
LATENESS_PERCENTS = (50.0, 99.0)
CLOSE_US = 50.0
"""`within_50us_pct` counts issue errors up to this."""
WAITED = {"host": "", "depth": "depth", "dependency": "dependency"}
"""What delayed a request, and the value of its column `waited`."""


def issue_errors_us(requests: pd.DataFrame) -> Floats:
    """Return issue time minus deadline for each request with both, in schedule order.

    Shape (n,).
    Columns: deadline_ns, issue_ns.
    """
    errors = (times_ns(requests, "issue_ns") - times_ns(requests, "deadline_ns")) / 1000
    return errors[~np.isnan(errors)]


def issue_error_summary(errors_us: Floats) -> dict[str, float | None] | None:
    """Return the distribution of issue errors and the share within CLOSE_US.

    `errors_us` has shape (n,); None without errors.
    """
    if not errors_us.size:
        return None
    errors = distribution(errors_us, ISSUE_PERCENTS)
    within = 100 * float((np.abs(errors_us) <= CLOSE_US).mean())
    return {**errors, "min": float(errors_us.min()), "within_50us_pct": within}


def lateness_by(requests: pd.DataFrame) -> dict[str, dict[str, Any]] | None:
    """Return requests and lateness in us by cause: depth, dependency or host.

    `requests` counts all issued requests of a cause. Requests of `host` were delayed only by the host itself, if at
    all. None for a schedule without deadlines. Columns: deadline_ns, issue_ns, waited.
    """
    late_us = (times_ns(requests, "issue_ns") - times_ns(requests, "deadline_ns")) / 1000
    known = ~np.isnan(late_us)
    if not known.any():
        return None
    waited = requests["waited"]
    result: dict[str, dict[str, Any]] = {}
    for cause, value in WAITED.items():
        lateness_us = late_us[known & (waited == value).to_numpy(np.bool_)]
        spread = distribution(lateness_us, LATENESS_PERCENTS)
        result[cause] = {"requests": int(lateness_us.size), **{name: spread[name] for name in ("p50", "p99", "max")}}
    return result


def order_inversions(issue_ns: Floats, excused: Flags) -> int | None:
    """Count requests issued before one that the schedule has earlier.

    The result is None if no issue time is known.
    Both arrays have shape (rows,) in schedule order; requests not issued are NaN. Later requests may overtake a request
    that is `excused`: it was parked while it waited for its dependency. An excused request that itself overtakes an
    earlier request that was not parked does count. Requests issued at the same time are in order.
    """
    issued = ~np.isnan(issue_ns)
    if not issued.any():
        return None
    held = np.where(issued & ~excused, issue_ns, -np.inf)
    latest_before = np.maximum.accumulate(held)
    return int((issue_ns[1:] < latest_before[:-1]).sum())


def parked(requests: pd.DataFrame) -> Flags:
    """Return which requests their dependency delayed; shape (rows,). Column: waited."""
    return np.asarray(requests["waited"] == WAITED["dependency"], np.bool_)


def span_ratio(issue_ns: Floats, planned_ns: Floats) -> tuple[float | None, float | None, float | None]:
    """Return the span of the issues, the planned span (both in s), and their ratio.

    The planned span and the ratio are of the requests that were issued.
    Both arrays have shape (rows,), NaN where not known; a span is from the smallest to the largest time. A span is None
    without times; the ratio is also None if the plan has all requests at one time.
    """
    both: npt.NDArray[np.bool_] = ~np.isnan(issue_ns) & ~np.isnan(planned_ns)
    issued_ns = issue_ns[~np.isnan(issue_ns)]
    issue_s = float(np.ptp(issued_ns)) / 1e9 if issued_ns.size else None
    if not both.any():
        return issue_s, None, None
    compared_s, planned_s = (float(np.ptp(times[both])) / 1e9 for times in (issue_ns, planned_ns))
    return issue_s, planned_s, compared_s / planned_s if planned_s else None


COLUMNS = ("operation", "source", "latency_ns", "count")


def latency_bins(requests: pd.DataFrame) -> pd.DataFrame:
    """Count requests per latency bin, in replay and trace: rows of COLUMNS.

    `source` is "replay" or "trace"; `latency_ns` is the middle of a bin of fio. Only requests that completed in the
    replay count, and for the trace only those with a known latency (replay_requests.trace_latencies_us).
    Columns: operation, preflush, issue_ns, complete_ns, error, trace_latency_ns.
    """
    codes, good = operation_codes(requests), completed(requests)
    bins_of: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for source, latencies in (("replay", latencies_us), ("trace", trace_latencies_us)):
        latency_us = latencies(requests)
        known = good & ~np.isnan(latency_us)
        for code in range(len(OPERATIONS)):
            bins_of[code, source] = _bins(latency_us[known & (codes == code)])
    rows = [(OPERATIONS[code], source, *item) for (code, source), bins in sorted(bins_of.items()) for item in bins]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def issue_error_bins(requests: pd.DataFrame) -> pd.DataFrame:
    """Return columns error_ns (middle of a bin of fio) and count, ascending.

    The result is empty without deadlines.
    A request issued before its deadline counts as 0; no engine should do that. Columns: deadline_ns, issue_ns.
    """
    return pd.DataFrame(_bins(issue_errors_us(requests)), columns=["error_ns", "count"])


def _bins(values_us: Floats) -> list[tuple[int, int]]:
    """Return (middle in ns, count) of each bin that is not empty, ascending."""
    counts: Counter[int] = Counter()
    for first in range(0, len(values_us), BATCH_ROWS):
        values_ns = np.rint(1000 * np.maximum(values_us[first : first + BATCH_ROWS], 0)).astype(np.int64)
        indices, per_bin = np.unique(bin_indices(values_ns), return_counts=True)
        counts.update(dict(zip(indices.tolist(), per_bin.tolist(), strict=True)))
    return [(bin_value(index), count) for index, count in sorted(counts.items())]
