"""How true a replay was to its schedule: times of issue, order, bursts, duration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.analysis.replay_requests import Flags, Floats, distribution, times_ns

ISSUE_PERCENTS = (50.0, 90.0, 95.0, 99.0, 99.9)
LATENESS_PERCENTS = (50.0, 99.0)
CLOSE_US = 50.0
"""Issue errors up to this are counted in `within_50us_pct`."""
BURST_REQUESTS = 8
BURST_NS = 1000
"""A burst: so many requests or more that are due within so long (ours)."""
KEPT_US = 100.0
"""A burst is kept if the last of it was issued no later than so long after the first (ours)."""
WAITED = {"host": "", "depth": "depth", "dependency": "dependency"}
"""Whom a request was late by, and the value of its column `waited`."""


def issue_errors_us(requests: pd.DataFrame) -> Floats:
    """Issue minus deadline of each request that has both, in the order of the schedule; shape (n,).

    Columns: deadline_ns, issue_ns.
    """
    errors = (times_ns(requests, "issue_ns") - times_ns(requests, "deadline_ns")) / 1000
    return errors[~np.isnan(errors)]


def issue_error_summary(errors_us: Floats) -> dict[str, float | None] | None:
    """Distribution of issue errors of shape (n,), and the share within CLOSE_US; None for none of them."""
    if not errors_us.size:
        return None
    found = distribution(errors_us, ISSUE_PERCENTS)
    within = 100 * float((np.abs(errors_us) <= CLOSE_US).mean())
    return {**found, "min": float(errors_us.min()), "within_50us_pct": within}


def lateness_by(requests: pd.DataFrame) -> dict[str, dict[str, Any]] | None:
    """Requests and their lateness in us by what they waited for: a place in flight, a dependency, else the host.

    `requests` counts all issued ones of a kind, those of `host` are on time but for what the host itself took.
    None where there is nothing to be late for. Columns: deadline_ns, issue_ns, waited.
    """
    late_us = (times_ns(requests, "issue_ns") - times_ns(requests, "deadline_ns")) / 1000
    known = ~np.isnan(late_us)
    if not known.any():
        return None
    waited = requests["waited"]
    result: dict[str, dict[str, Any]] = {}
    for who, value in WAITED.items():
        found = late_us[known & (waited == value).to_numpy(np.bool_)]
        spread = distribution(found, LATENESS_PERCENTS)
        result[who] = {"requests": int(found.size), **{name: spread[name] for name in ("p50", "p99", "max")}}
    return result


def order_inversions(issue_ns: Floats, excused: Flags) -> int | None:
    """Requests that were issued before one that the schedule has before them; None if no issue time is known.

    Both of shape (rows,) in the order of the schedule, NaN for what was not issued. A request may be overtaken by
    those behind it where that is `excused`: it waited for its dependency and was parked meanwhile. One that is itself
    late by its dependency and yet went before an earlier one that was not parked counts. What was issued at the same
    time is in order.
    """
    issued = ~np.isnan(issue_ns)
    if not issued.any():
        return None
    held = np.where(issued & ~excused, issue_ns, -np.inf)
    latest_before = np.maximum.accumulate(held)
    return int((issue_ns[1:] < latest_before[:-1]).sum())


def parked(requests: pd.DataFrame) -> Flags:
    """Requests that their dependency made late; shape (rows,). Column: waited."""
    return np.asarray(requests["waited"] == WAITED["dependency"], np.bool_)


def bursts(requests: pd.DataFrame) -> dict[str, Any] | None:
    """What became of bursts: BURST_REQUESTS or more that are due within BURST_NS of the first of them.

    `planned` and `kept` count bursts, `requests` the requests in them, `largest` those of the largest; `spread_us` is
    the distribution of the times from the first to the last issue of a burst. A burst of which something was not
    issued is not kept. What waited for a dependency belongs to no burst. None for schedules without deadlines. An
    engine that hands a burst to the kernel in one system call has one time of issue for all of it: how far apart they
    got is for the kernel's tracer to tell.
    Columns: deadline_ns, issue_ns, waited.
    """
    deadline_ns = times_ns(requests, "deadline_ns")
    alone = ~parked(requests) & ~np.isnan(deadline_ns)
    if not alone.any():
        return None
    deadline_ns, issue_ns = deadline_ns[alone], times_ns(requests, "issue_ns")[alone]
    groups = np.array(list(_groups(deadline_ns)), np.int64).reshape(-1, 2)
    sizes = groups[:, 1] - groups[:, 0]
    spreads = np.array([np.ptp(issue_ns[first:end]) for first, end in groups], np.float64) / 1000
    known = ~np.isnan(spreads)
    return {
        "planned": len(groups),
        "kept": int((spreads[known] <= KEPT_US).sum()),
        "kept_within_us": KEPT_US,
        "requests": int(sizes.sum()),
        "largest": int(sizes.max(initial=0)),
        "spread_us": distribution(spreads[known], (50.0, 95.0, 99.0)),
    }


def _groups(deadline_ns: Floats) -> Iterator[tuple[int, int]]:
    """Bursts as (first, end) in ascending deadlines."""
    ends = np.searchsorted(deadline_ns, deadline_ns + BURST_NS, side="right")
    starts = np.flatnonzero(ends - np.arange(len(ends)) >= BURST_REQUESTS)
    reached = 0
    for first, end in zip(starts.tolist(), ends[starts].tolist(), strict=True):
        if first >= reached:
            yield first, end
            reached = end


def span_ratio(issue_ns: Floats, planned_ns: Floats) -> tuple[float | None, float | None, float | None]:
    """Span of the issues in s, span of the plan for the same requests in s, and the former by the latter.

    Both of shape (rows,), NaN where not known; a span is from the least to the greatest time. None where there are no
    times, the ratio also where the plan has all at once.
    """
    both: npt.NDArray[np.bool_] = ~np.isnan(issue_ns) & ~np.isnan(planned_ns)
    issued_ns = issue_ns[~np.isnan(issue_ns)]
    issue_s = float(np.ptp(issued_ns)) / 1e9 if issued_ns.size else None
    if not both.any():
        return issue_s, None, None
    compared_s, planned_s = (float(np.ptp(times[both])) / 1e9 for times in (issue_ns, planned_ns))
    return issue_s, planned_s, compared_s / planned_s if planned_s else None
