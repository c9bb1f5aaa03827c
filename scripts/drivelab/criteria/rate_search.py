"""Search the highest rate of requests whose tail latency keeps a limit: rise, then bisection.

The search is a function of the rates measured so far, so an interrupted one resumes. A rate passes only if the whole
interval of its percentile lies below the limit, and fails only if it lies above. All other rates are undecided and stay
in the interval of the answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drivelab.criteria.tail_interval import WARM_UP, TailInterval, fewest_requests

PASSES, FAILS, UNDECIDED, HOST_LIMITED = "passes", "fails", "undecided", "host-limited"
OUTCOMES = (PASSES, FAILS, UNDECIDED, HOST_LIMITED)
MOST_RATES = 64
"""Largest number of rates of a search."""


def judge(interval: TailInterval, limit: float) -> str:
    """Return whether a percentile keeps the limit: PASSES, FAILS or UNDECIDED."""
    if interval.high < limit:
        return PASSES
    return FAILS if interval.low > limit else UNDECIDED


def worth_repeating(outcome: str, effective_requests: int, attempts: int, tries: int, percentile: float) -> bool:
    """Return whether a rate after some attempts is measured again: undecided, and more requests can decide it."""
    within_reach = effective_requests * tries / attempts >= fewest_requests(percentile)
    return outcome == UNDECIDED and attempts < tries and within_reach


def judge_with_host(response: TailInterval, without_host: TailInterval, limit: float) -> str:
    """Return the outcome of a rate, HOST_LIMITED if it fails only because the host issued requests late.

    `without_host` is the same percentile with the host's own delay of each issue taken off.
    """
    outcome = judge(response, limit)
    return HOST_LIMITED if outcome == FAILS and judge(without_host, limit) != FAILS else outcome


@dataclass(frozen=True)
class Search:
    """Rates in I/Os per second: where the search starts, how it rises, how close it gets, where it stops."""

    start_iops: float
    factor: float
    resolution: float
    """Largest distance of two neighbouring rates at the end, as a share of the lower one."""
    most_iops: float
    least_iops: float = 0.0
    """Below it, a measurement has too few requests for any answer."""

    @classmethod
    def of_step(cls, fields: Mapping[str, Any], offset: float = 0.0) -> Search:
        """Return the search of a load step of a plan.

        `offset`, from 0 to 1, moves the first rate by this part of a rise. With another offset for each run, runs do
        not measure the same rates, so their scatter includes the distance between rates.
        """
        rates, percentile = dict(fields["rates"]), fields["limit"]["percentile"]
        requests_s = (1 - WARM_UP) * fields["runtime_s"] * fields["tries"]
        rates["start_iops"] = min(rates["start_iops"] * rates["factor"] ** offset, rates["most_iops"])
        return cls(**rates, least_iops=min(max(fewest_requests(percentile) / requests_s, 1.0), rates["most_iops"]))


@dataclass(frozen=True)
class Answer:
    """What the measured rates say; None where there is no such rate."""

    passing_iops: float | None
    """Highest rate that passes, below all rates that fail."""
    failing_iops: float | None
    """Lowest rate that fails."""
    undecided: tuple[float, ...]
    """Rates between the two that the data cannot decide."""
    host_limited: bool
    """Whether the host stopped the search."""


def answer(rates: Sequence[tuple[float, str]]) -> Answer:
    """Return the answer from rates and their outcomes, in any order."""
    failing = min((iops for iops, outcome in rates if outcome == FAILS), default=None)
    top = math.inf if failing is None else failing
    passing = max((iops for iops, outcome in rates if outcome == PASSES and iops < top), default=None)
    low = 0.0 if passing is None else passing
    between = sorted(iops for iops, outcome in rates if outcome in (UNDECIDED, HOST_LIMITED) and low < iops < top)
    host = any(outcome == HOST_LIMITED and low < iops < top for iops, outcome in rates)
    return Answer(passing, failing, tuple(between), host)


def next_rate(search: Search, rates: Sequence[tuple[float, str]]) -> float | None:
    """Return the next rate to measure, or None at the end of the search.

    Without a rate that passes, the search falls by the factor; without one that fails, it rises. Then it bisects,
    by the geometric mean, first between the highest passing rate and the lowest above it, then between the highest
    undecided and the lowest failing rate. A host-limited rate bounds the search like a failing one. Rates have four
    significant digits.
    """
    if len(rates) >= MOST_RATES:
        return None
    following = _next(search, rates)
    if following is None:
        return None
    rounded = float(f"{following:.4g}")
    return None if any(iops == rounded for iops, _ in rates) else rounded


def _next(search: Search, rates: Sequence[tuple[float, str]]) -> float | None:
    if not rates:
        return max(search.start_iops, search.least_iops)
    found = answer(rates)
    host = min((iops for iops, outcome in rates if outcome == HOST_LIMITED), default=None)
    ceiling = min((iops for iops in (found.failing_iops, host) if iops is not None), default=None)
    lowest, highest = min(iops for iops, _ in rates), max(iops for iops, _ in rates)
    if ceiling is None and highest < search.most_iops:
        return min(highest * search.factor, search.most_iops)
    if found.passing_iops is None:
        return lowest / search.factor if lowest / search.factor >= search.least_iops else None
    undecided = [iops for iops in found.undecided if iops != host and iops < (ceiling or math.inf)]
    edges = [(found.passing_iops, undecided[0] if undecided else ceiling)]
    if undecided:
        edges.append((undecided[-1], ceiling))
    for low, high in edges:
        if high is not None and high / low > 1 + search.resolution:
            return math.sqrt(low * high)
    return None
