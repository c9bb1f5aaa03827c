"""What the two figures of deltas share: which values are shown, in which row, and how a delta is written."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from drivelab.figures.base import overlay, selection
from drivelab.figures.base.quantities import short_name

KEY = ["measurement", "metric", "cell_label"]
COLUMNS = (*KEY, "basis", "comparison", "delta_pct", "interval_low_pct", "interval_high_pct", "verdict")
_MOST_LINES = 40
_GAP_LINES = 0.3
_LETTERS = 20
"""Of a line of a cell's name: longer ones would take the width that the values need."""
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


def looks(deltas: pd.DataFrame) -> dict[str, overlay.Look]:
    """Of the compared drives; the basis is one of the drives, the first unless it is known better, and has its own."""
    all_drives = overlay.looks([*deltas["basis"], *deltas["comparison"]])
    return {drive: look for drive, look in all_drives.items() if (deltas["comparison"] == drive).any()}


def by_weight(deltas: pd.DataFrame) -> list[str]:
    """The metrics, those first that tell the most."""
    metrics = list(deltas["metric"].drop_duplicates())
    return sorted(metrics, key=lambda metric: _FIRST.index(metric) if metric in _FIRST else len(_FIRST))


@dataclass(frozen=True)
class Names:
    """How cells are called beside their rows."""

    of_cell: Mapping[str, str]
    """By their label, in lines."""
    shared: str
    """What is in the label of every cell and hence in none of the names, else empty."""

    @property
    def lines(self) -> int:
        """Of the name with the most."""
        return 1 + max(name.count("\n") for name in self.of_cell.values())


def names(labels: Iterable[str]) -> Names:
    """Short labels as they are; of long ones what tells them apart, wrapped."""
    whole = list(dict.fromkeys(labels))
    if max(map(len, whole)) <= _LETTERS:
        return Names({label: label for label in whole}, "")
    in_all = set.intersection(*({word.rstrip(",") for word in label.split()} for label in whole))
    short = [" ".join(word for word in label.split() if word.rstrip(",") not in in_all) for label in whole]
    shared = " ".join(word for word in whole[0].split() if word.rstrip(",") in in_all).rstrip(",")
    if len(whole) == 1 or not all(short) or len(set(short)) < len(whole):
        short, shared = whole, ""
    wrapped = ["\n".join(textwrap.wrap(name.rstrip(","), _LETTERS)) for name in short]
    return Names(dict(zip(whole, wrapped, strict=True)), shared)


@dataclass(frozen=True)
class Rows:
    """Where everything stands on an axis that counts lines from the top."""

    of_cell: Mapping[tuple[str, ...], float]
    """Middle of the lines of each cell, by the columns of KEY."""
    headings: Mapping[float, str]
    """What stands above the cells of a measurement and metric."""
    lines: float
    """All there are."""

    def told(self, line: float) -> str:
        """The cell next to a line, with what was measured there."""
        measurement, metric, cell = min(self.of_cell, key=lambda key: abs(self.of_cell[key] - line))
        return f"{measurement}: {short_name(metric)}, {cell}"


def rows(deltas: pd.DataFrame, lines_of_cell: int) -> Rows:
    """A heading for each metric, and measurement if there are several, then its cells with `lines_of_cell` each."""
    of_cell: dict[tuple[str, ...], float] = {}
    headings: dict[float, str] = {}
    line, several = 0.0, deltas["measurement"].nunique() > 1
    for (measurement, metric), group in deltas.groupby(["measurement", "metric"], sort=False):
        line += _GAP_LINES if headings else 0.0
        name = short_name(metric)
        headings[line + 0.5] = f"{measurement}: {name}" if several else name[0].upper() + name[1:]
        line += 1.0
        for cell in group["cell_label"].drop_duplicates():
            of_cell[measurement, metric, cell] = line + (lines_of_cell + _GAP_LINES) / 2
            line += lines_of_cell + _GAP_LINES
    return Rows(of_cell, headings, line)
