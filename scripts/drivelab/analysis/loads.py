"""Read and write the load of points (MAX, MID, MIN) in a `statistic`.

Each recording chooses this load for itself. The column `statistic` of the table `summary` names it:
`average of the whole soak, at T4Q2`.
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
    """Return the load suffix for a statistic of one cell's rows of table `cells`.

    The result is empty if they are not at a point.
    """
    points = cells[cells["point"].notna()]
    return _suffix(demand(*load) for load in points[["threads", "queue_depth"]].itertuples(index=False))


def at_all(statistics: Iterable[str]) -> str:
    """Return the load suffix for pooled values: all loads of their statistics."""
    return _suffix(load for statistic in statistics for load in loads(statistic))


@cache
def loads(statistic: str) -> tuple[str, ...]:
    """Return the loads that a statistic names; pooled recordings may have several."""
    match = _AT_LOADS.search(statistic)
    return tuple(re.findall(_LOAD, match[0])) if match else ()


def without_loads(statistics: pd.Series) -> pd.Series:
    """Return the statistics without their load suffix."""
    return statistics.str.replace(_AT_LOADS, "", regex=True)


def without_load(statistic: str) -> str:
    """Return one statistic without its load suffix."""
    return _AT_LOADS.sub("", statistic)


def _suffix(names: Iterable[str]) -> str:
    unique = list(dict.fromkeys(names))
    return f", at {' or '.join(unique)}" if unique else ""
