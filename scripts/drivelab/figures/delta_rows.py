"""What the two figures of deltas share: which values are shown, in which row, and how a delta is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from drivelab.figures import selection
from drivelab.figures.quantities import short_name

KEY = ["measurement", "metric", "cell_label"]
COLUMNS = (*KEY, "basis", "comparison", "delta_pct", "interval_low_pct", "interval_high_pct", "verdict")
_MOST_LINES = 40
_GAP_LINES = 0.3
_FIRST = ("score", "duration_s", "figure_of_merit", "iops", "mean_latency_us")
"""Metrics that are shown where there are too many rows for all; the bandwidth of a cell is its I/O rate over again."""


def checked(deltas: pd.DataFrame, *more: str) -> str:
    """Name of the one basis; raises ValueError for unsuitable tables."""
    selection.require(deltas, (*COLUMNS, *more), "deltas")
    basis = str(selection.require_one(deltas, "basis", "deltas"))
    if deltas.duplicated([*KEY, "comparison"]).any():
        raise ValueError("table 'deltas' holds a cell twice for one drive; choose one protocol")
    return basis


def most_telling(deltas: pd.DataFrame) -> pd.DataFrame:
    """All deltas, or those of as many metrics as a page has lines for; one metric at the least."""
    kept: list[str] = []
    lines = 0
    for metric in by_weight(deltas):
        lines += len(deltas[deltas["metric"] == metric]) + 1
        if kept and lines > _MOST_LINES:
            break
        kept.append(metric)
    return deltas[deltas["metric"].isin(kept)]


def by_weight(deltas: pd.DataFrame) -> list[str]:
    """The metrics, those first that tell the most."""
    metrics = list(deltas["metric"].drop_duplicates())
    return sorted(metrics, key=lambda metric: _FIRST.index(metric) if metric in _FIRST else len(_FIRST))


@dataclass(frozen=True)
class Rows:
    """Where everything stands on an axis that counts lines from the top."""

    of_cell: Mapping[tuple[str, ...], float]
    """Middle of the lines of each cell, by the columns of KEY."""
    headings: Mapping[float, str]
    """What stands above the cells of a measurement and metric."""
    lines: float
    """All there are."""


def rows(deltas: pd.DataFrame, lines_of_cell: int) -> Rows:
    """A heading for each measurement and metric, then its cells with `lines_of_cell` lines each."""
    of_cell: dict[tuple[str, ...], float] = {}
    headings: dict[float, str] = {}
    line = 0.0
    for (measurement, metric), group in deltas.groupby(["measurement", "metric"], sort=False):
        line += _GAP_LINES if headings else 0.0
        headings[line + 0.5] = f"{measurement}: {short_name(metric)}"
        line += 1.0
        for cell in group["cell_label"].drop_duplicates():
            of_cell[measurement, metric, cell] = line + (lines_of_cell + _GAP_LINES) / 2
            line += lines_of_cell + _GAP_LINES
    return Rows(of_cell, headings, line)
