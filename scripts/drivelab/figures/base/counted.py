"""Counted rounds of a loop, and the value of each of its cells."""

from __future__ import annotations

import pandas as pd

from drivelab.analysis.values.rows import odd
from drivelab.criteria.repeats import FEWEST
from drivelab.figures.base import selection
from drivelab.tables import labels


def loop_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the labelled loop cells of one drive and run; raises ValueError for several or none."""
    return labels.named(selection.one_measurement(cells))


def counted(loop: pd.DataFrame, steady_state: pd.DataFrame) -> pd.DataFrame:
    """Return the counted rounds: those of a steady-state window, else an odd number of warm rounds.

    The table `summary` uses the same rounds.
    """
    windows = selection.windows(steady_state)
    parts = []
    for (recording, step), rounds in loop[~loop["cold"].astype(bool)].groupby(["recording", "step"]):
        numbers = sorted(rounds["round"].unique())
        if (recording, step) in windows:
            first, last = windows[recording, step]
            numbers = [number for number in numbers if first <= number <= last]
        elif len(numbers) >= FEWEST:
            numbers = numbers[: odd(len(numbers))]
        parts.append(rounds[rounds["round"].isin(numbers)])
    rounds_that_count = pd.concat(parts) if parts else loop.iloc[:0]
    if rounds_that_count.empty:
        raise ValueError("table 'cells' has no rounds that count")
    return rounds_that_count


def values(loop: pd.DataFrame, steady_state: pd.DataFrame, metrics: list[str], by: list[str]) -> pd.DataFrame:
    """Return columns `by` and `metrics` of each cell: window average, else median of counted rounds."""
    rounds = counted(loop, steady_state)
    groups = rounds.groupby(by, sort=False, as_index=False)[metrics]
    steady = not steady_state.empty
    return groups.mean() if steady else groups.median()


def what(steady_state: pd.DataFrame) -> str:
    """Return what `values` are, for a note."""
    return "average of the window" if not steady_state.empty else "median of the counted rounds"
