"""Make the rows of the table `summary` for loads: the highest rate whose tail latency keeps the limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from drivelab.analysis.values.rows import Trust, evidence, key_of, row, turn_of
from drivelab.analysis.verdict import LIMIT_FOUND, LIMIT_OPEN
from drivelab.criteria.rate_search import Answer, answer
from drivelab.plan.loops import limit_words

METRIC = "iops_within_limit"


@dataclass(frozen=True)
class LoadAnswer:
    """The answer of one load step of a recording."""

    rates: pd.DataFrame
    """Its rows of table `load_rates` that count, by rate."""
    found: Answer

    @property
    def label(self) -> str:
        """Return workload, arrivals and limit, such as `RND 4KiB 70/30, poisson arrivals, p99.99 below 1 ms`."""
        first = self.rates.iloc[0]
        of_trace = f" of {first['trace']}" if isinstance(first["trace"], str) else ""
        limit = limit_words(float(first["percentile"]), float(first["limit_us"]))
        return f"{first['workload']}, {first['arrivals']} arrivals{of_trace}, {limit}{turn_of(self.rates)}"

    def sentence(self) -> str:
        """Return the answer in words, such as `31,200 IOPS with p99.99 below 1 ms (between 31,200 and 32,800)`."""
        first, found = self.rates.iloc[0], self.found
        limit = limit_words(float(first["percentile"]), float(first["limit_us"]))
        if found.passing_iops is None:
            tested = f"{self.rates['rate_iops'].min():,.0f} IOPS"
            fails = found.failing_iops is not None and not found.undecided
            return f"no measured rate keeps {limit}; " + (f"{tested} fail" if fails else f"{tested} are undecided")
        between = "" if not found.undecided else f"; {self._undecided()}"
        if found.failing_iops is None:
            return f"at least {found.passing_iops:,.0f} IOPS with {limit} (no rate fails{between})"
        bounds = f"between {found.passing_iops:,.0f} and {found.failing_iops:,.0f}"
        return f"{found.passing_iops:,.0f} IOPS with {limit} ({bounds}{between})"

    def _undecided(self) -> str:
        ends = dict.fromkeys(f"{iops:,.0f}" for iops in (self.found.undecided[0], self.found.undecided[-1]))
        return f"{' to '.join(ends)} {'host-limited' if self.found.host_limited else 'undecided'}"


def load_answers(load_rates: pd.DataFrame) -> Iterator[LoadAnswer]:
    """Yield the answer of each load step of each recording, from the rows of table `load_rates` that count."""
    counted = load_rates[load_rates["counted"].astype(bool)]
    for _, rates in counted.groupby(["recording", "step"], sort=False):
        ordered = rates.sort_values("rate_iops")
        pairs = zip(ordered["rate_iops"].astype(float), ordered["outcome"].astype(str), strict=True)
        yield LoadAnswer(ordered, answer(list(pairs)))


def load_rows(load_rates: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the highest passing rate of each load step; a step without one has no row.

    The spread reaches from the highest passing to the lowest failing rate. Without a failing rate, or with undecided
    rates between the two, the value is a lower bound, and the verdict says so. A later step with the same label has the
    step's number.
    """
    labels = set[tuple[str, str]]()
    for each in load_answers(load_rates):
        found, recording = each.found, str(each.rates["recording"].iloc[0])
        if found.passing_iops is None:
            continue
        label = each.label
        if (recording, label) in labels:
            label += f" step {each.rates['step'].iloc[0]}"
        labels.add((recording, label))
        passing = each.rates[each.rates["rate_iops"] == found.passing_iops]
        ends = sorted({found.passing_iops, found.failing_iops or found.passing_iops})
        verdict = LIMIT_OPEN if found.failing_iops is None or found.undecided else LIMIT_FOUND
        trust = Trust.of(passing).columns(verdict, METRIC, [found.passing_iops], max)
        cells = evidence(recording, [name for names in passing["directories"] for name in names])
        yield row(key_of(passing), label, METRIC, value=found.passing_iops, samples=ends, scope="rates",
                  evidence=cells, statistic="highest rate that passes", **trust)  # fmt: skip
