"""Search tests for changes of level, and say how a test stands against its baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from drivelab.analysis.change_points import Change, Design, Shift, changes, first_change, scatter, shift
from drivelab.analysis.deltas.inference import adjusted
from drivelab.analysis.verdict import (
    CANNOT_TELL,
    DECIDED,
    FASTER,
    FASTER_BEYOND,
    FINE,
    SAME,
    SLOWER,
    SLOWER_BEYOND,
)
from drivelab.core.grouping import grouped
from drivelab.trend.series import Group, Key

LATEST = "latest point"


@dataclass(frozen=True)
class Search:
    """The series of a test, and its changes of level."""

    logs: Sequence[float]
    design: Design
    critical: float
    """Largest p-value of a change that counts, adjusted for all tests; the level itself if none counts."""
    changes: Sequence[Change]
    why_not: str
    """Why the series was not searched; empty if it was."""


def searched(
    tests: Sequence[tuple[Group, Key, list[list[Any]]]], by: str, alpha: float
) -> dict[tuple[str, Key], Search]:
    """Search every test for changes of level; the first search of all tests together has at most `alpha` false ones."""
    series = {(group.name, key): _series(group, points, by) for group, key, points in tests}
    first = {place: None if by == "host" else first_change(*found) for place, found in series.items()}
    p = pd.Series([math.nan if found is None else found[1] for found in first.values()], dtype=float)
    places = [pd.Series([name for name, _ in first]), pd.Series([key.cell_label for _, key in first])]
    family = adjusted(p, places, pd.Series([key.metric for _, key in first]), alpha)
    searches = {}
    for place, (at, found) in enumerate(first.items()):
        logs, design = series[at]
        why_not = "hosts have no order" if by == "host" else "too few sound points" if found is None else ""
        critical = float(family.critical.iloc[place])
        is_found = found is not None and float(family.p.iloc[place]) <= alpha
        of_series = changes(logs, design, critical) if is_found else []
        searches[at] = Search(logs, design, critical if is_found else alpha, of_series, why_not)
    return searches


def _series(group: Group, points: list[list[Any]], by: str) -> tuple[list[float], Design]:
    """Return the logarithms of a test's sound values and their design; a drive's values at a point are averaged."""
    drives = list(dict.fromkeys(recording.identity for recording in group.recordings))
    logs, places, numbers = [], [], []
    for place, of_point in enumerate(points):
        sound = [(recording, row) for recording, row in of_point if row["verdict"] in FINE]
        for unit in grouped(sound, lambda pair: pair[0].identity if group.several_drives else id(pair)).values():
            logs.append(math.fsum(math.log(row["value"]) for _, row in unit) / len(unit))
            places.append(place)
            numbers.append(drives.index(unit[0][0].identity))
    return logs, Design(tuple(places), tuple(numbers), by == "date")


@dataclass(frozen=True)
class LevelChange:
    """A change of level between two points, in percent, positive for an improvement."""

    before: str
    """The last point of the old level."""
    point: str
    """The first point of the new level."""
    change_pct: float
    low_pct: float
    high_pct: float
    p_value: float
    """p-value of the search, before the adjustment for the number of tests."""
    outcome: str


@dataclass(frozen=True)
class Difference:
    """A difference to the baseline in percent, positive for an improvement; None where it is not known."""

    outcome: str
    change_pct: float | None
    low_pct: float | None
    high_pct: float | None
    because: str = LATEST
    """What decides the outcome: LATEST, or `level since` and a point."""


def level_changes(search: Search, names: Sequence[str], kind: str, margin_pct: float) -> list[LevelChange]:
    """Return the changes of level of a test with points `names`; `kind` is that of its metric."""
    found = []
    for change in search.changes:
        low, change_pct, high = _percents(change.shift, kind)
        outcome = _outcome(low, change_pct, high, margin_pct)
        found.append(LevelChange(names[change.point - 1], names[change.point], change_pct, low, high, change.p_value,
                                 outcome))  # fmt: skip
    return found


def standing(
    latest: Difference | None, names: Sequence[str], baseline: str, search: Search, kind: str, margin_pct: float
) -> Difference:
    """Return how a test stands against its baseline; `latest` is the difference of its latest point.

    If the level changed since the baseline, the levels are compared: they also show how much points of one level vary.
    Otherwise the latest point is; if dates were searched, its interval also includes how much dates vary.
    """
    bounds = [0, *(change.point for change in search.changes), len(names)]
    own = next(number for number, end in enumerate(bounds[1:]) if names.index(baseline) < end)
    if own < len(bounds) - 2:
        levels = (bounds[own], bounds[own + 1]), (bounds[-2], bounds[-1])
        low, change_pct, high = _percents(shift(search.logs, search.design, *levels, search.critical), kind)
        return Difference(_checked(low, change_pct, high, margin_pct), change_pct, low, high,
                          f"level since {names[bounds[-2]]}")  # fmt: skip
    if latest is None:
        return Difference(CANNOT_TELL, None, None, None)
    half = None if search.why_not or not search.design.by_point else scatter(search.logs, search.design, bounds)
    if latest.outcome not in DECIDED or half is None or latest.change_pct is None:
        return latest
    log = math.log1p(latest.change_pct / 100)
    ends = [math.log1p(end / 100) for end in (latest.low_pct, latest.high_pct) if end is not None]
    half = max(half, *(abs(end - log) for end in ends))
    low, high = (100 * math.expm1(end) for end in (log - half, log + half))
    return Difference(_checked(low, latest.change_pct, high, margin_pct), latest.change_pct, low, high)


def _checked(low_pct: float, change_pct: float, high_pct: float, margin_pct: float) -> str:
    """Return the verdict on a difference, which may be none."""
    outcome = _outcome(low_pct, change_pct, high_pct, margin_pct)
    return CANNOT_TELL if outcome != SAME and low_pct < 0 < high_pct else outcome


def _outcome(low_pct: float, change_pct: float, high_pct: float, margin_pct: float) -> str:
    """Return the verdict on a change that was found to be one; the margin is a factor in both directions."""
    least = 100 * (1 / (1 + margin_pct / 100) - 1)
    if least <= low_pct and high_pct <= margin_pct:
        return SAME
    if change_pct > 0:
        return FASTER_BEYOND if low_pct > margin_pct else FASTER
    return SLOWER_BEYOND if high_pct < least else SLOWER


def _percents(of_logs: Shift, kind: str) -> tuple[float, float, float]:
    """Return lower end, difference and upper end in percent; positive is better."""
    sign = -1 if kind == "time" else 1
    low, change, high = sorted(100 * math.expm1(sign * log) for log in (of_logs.low, of_logs.log, of_logs.high))
    return low, change, high
