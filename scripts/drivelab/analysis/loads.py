"""The load of values at points of a demand sweep (MAX, MID, MIN), which each recording chooses for itself.

It is part of the column `statistic` of the table `summary`: `average of the whole soak, at T4Q2`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

import pandas as pd

from drivelab.analysis.labels import demand

_LOAD = r"T\d+Q\d+"
_AT_LOADS = re.compile(rf", at {_LOAD}(?: or {_LOAD})*")


def at_points(cells: pd.DataFrame) -> str:
    """What is added to a statistic of rows of table `cells`, one cell's; empty where they are of no point."""
    points = cells[cells["point"].notna()]
    return _words(demand(*one) for one in points[["threads", "queue_depth"]].itertuples(index=False))


def at_all(statistics: Iterable[str]) -> str:
    """What is added to a statistic of values that have these: all their loads, each once."""
    return _words(load for one in statistics for load in loads(one))


@cache
def loads(statistic: str) -> tuple[str, ...]:
    """The loads that a statistic names; pooled recordings may have several."""
    found = _AT_LOADS.search(statistic)
    return tuple(re.findall(_LOAD, found[0])) if found else ()


def without_loads(statistics: pd.Series) -> pd.Series:
    """Statistics as they would be of a load that is the same for all."""
    return statistics.str.replace(_AT_LOADS, "", regex=True)


def without_load(statistic: str) -> str:
    """One statistic, as of `without_loads`."""
    return _AT_LOADS.sub("", statistic)


def _words(named: Iterable[str]) -> str:
    each = list(dict.fromkeys(named))
    return f", at {' or '.join(each)}" if each else ""
