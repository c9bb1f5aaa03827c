"""Measure how well a replay kept its schedule: times, order, duration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from drivelab.fio.cell_evidence import bin_indices, bin_value
from drivelab.replay.evaluation.requests import Flags, Floats, Requests, distribution
from drivelab.trace.parquet_schema import OPERATIONS

ISSUE_PERCENTS = (50.0, 90.0, 95.0, 99.0, 99.9)
LATENESS_PERCENTS = (50.0, 99.0)
CLOSE_US = 50.0
"""`within_50us_pct` counts issue errors up to this."""
WAITED = {"host": "", "depth": "depth", "dependency": "dependency"}
"""What delayed a request, and the value of its column `waited`."""


def issue_errors(requests: Requests) -> dict[str, float | None] | None:
    """Return the distribution of issue time minus deadline in us, and the share within CLOSE_US.

    None without deadlines or without requests that were issued.
    """
    errors_us = _known(requests.late_us)
    if not errors_us.size:
        return None
    within = 100 * float((np.abs(errors_us) <= CLOSE_US).mean())
    errors = distribution(errors_us, ISSUE_PERCENTS)
    return {**errors, "min": float(errors_us[0]), "within_50us_pct": within}


def lateness_by(requests: Requests) -> dict[str, dict[str, Any]] | None:
    """Return requests and lateness in us by cause: depth, dependency or host.

    `requests` counts all issued requests of a cause. Requests of `host` were delayed only by the host itself, if at
    all. None for a schedule without deadlines.
    """
    late_us = requests.late_us
    if np.isnan(late_us).all():
        return None
    result: dict[str, dict[str, Any]] = {}
    for cause, value in WAITED.items():
        of_cause = _known(late_us[(requests.frame["waited"] == value).to_numpy(np.bool_)])
        spread = distribution(of_cause, LATENESS_PERCENTS)
        result[cause] = {"requests": int(of_cause.size), **{name: spread[name] for name in ("p50", "p99", "max")}}
    return result


def order_inversions(requests: Requests) -> int | None:
    """Count requests issued before one that the schedule has earlier.

    The result is None if no issue time is known.
    Later requests may overtake a request that was parked while it waited for its dependency. A parked request that
    itself overtakes an earlier request that was not parked does count. Requests issued at the same time are in order.
    """
    issue_ns, issued = requests.issue_ns, requests.issued
    if not issued.any():
        return None
    parked = (requests.frame["waited"] == WAITED["dependency"]).to_numpy(np.bool_)
    latest_before = np.maximum.accumulate(np.where(issued & ~parked, issue_ns, -np.inf))
    return int((issue_ns[1:] < latest_before[:-1]).sum())


def span_ratio(issue_ns: Floats, planned_ns: Floats) -> tuple[float | None, float | None, float | None]:
    """Return the span of the issues, the planned span (both in s), and their ratio.

    The planned span and the ratio are of the requests that were issued.
    Both arrays have shape (rows,), NaN where not known; a span is from the smallest to the largest time. A span is None
    without times; the ratio is also None if the plan has all requests at one time.
    """
    both: Flags = ~np.isnan(issue_ns) & ~np.isnan(planned_ns)
    issued_ns = _known(issue_ns)
    issue_s = float(np.ptp(issued_ns)) / 1e9 if issued_ns.size else None
    if not both.any():
        return issue_s, None, None
    compared_s, planned_s = (float(np.ptp(times[both])) / 1e9 for times in (issue_ns, planned_ns))
    return issue_s, planned_s, compared_s / planned_s if planned_s else None


def latency_bins(requests: Requests) -> pd.DataFrame:
    """Count requests per latency bin, in replay and trace: columns operation, source, latency_ns, count.

    `source` is "replay" or "trace"; `latency_ns` is the middle of a bin of fio. Only requests that completed in the
    replay count, and for the trace only those with a known latency.
    """
    operation, good = requests.operation, requests.completed
    rows = [
        (name, source, *filled_bin)
        for code, name in enumerate(OPERATIONS)
        for source, latency_us in (("replay", requests.latency_us), ("trace", requests.trace_latency_us))
        for filled_bin in _bins(_known(latency_us[good & (operation == code)]))
    ]
    return pd.DataFrame(rows, columns=["operation", "source", "latency_ns", "count"])


def issue_error_bins(requests: Requests) -> pd.DataFrame:
    """Return columns error_ns (middle of a bin of fio) and count, ascending; empty without deadlines.

    A request issued before its deadline counts as 0; no engine should do that.
    """
    return pd.DataFrame(_bins(_known(requests.late_us)), columns=["error_ns", "count"])


def _bins(values_us: Floats) -> list[tuple[int, int]]:
    """Return (middle in ns, count) of each bin that is not empty, ascending."""
    values_ns = np.rint(1000 * np.maximum(values_us, 0)).astype(np.int64)
    indices, counts = np.unique(bin_indices(values_ns), return_counts=True)
    return [(bin_value(index), count) for index, count in zip(indices.tolist(), counts.tolist(), strict=True)]


def _known(values: Floats) -> Floats:
    return values[~np.isnan(values)]
