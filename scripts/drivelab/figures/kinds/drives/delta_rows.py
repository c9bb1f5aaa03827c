"""Shared parts of the two figures of deltas: selected values, rows and names."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from drivelab.analysis.deltas.main_values import Value, main_values
from drivelab.figures.base import overlay, selection
from drivelab.figures.base.quantities import short_name

KEY = ["measurement", "metric", "cell_label"]
_MOST_LINES = 40
_GAP_LINES = 0.3
_LETTERS = 20
"""Maximum length of a line of a cell's name, so that the values have enough width."""
_FIRST = ("score", "duration_s", "figure_of_merit", "iops", "mean_latency_us")
"""Metrics shown first if not all fit; the bandwidth of a cell only repeats its I/O rate."""


def checked(deltas: pd.DataFrame) -> str:
    """Return the name of the basis; raises ValueError for unsuitable tables and for several bases."""
    basis = str(selection.require_one(deltas, "basis", "deltas"))
    if deltas.duplicated([*KEY, "comparison"]).any():
        raise ValueError("table 'deltas' holds a cell twice for one drive; choose one protocol")
    return basis


def most_telling(deltas: pd.DataFrame) -> pd.DataFrame:
    """Return the deltas without metrics that repeat another one.

    All cells are shown, each in the metric that it is known by; further metrics as far as they fit on a page.
    """
    columns = (deltas[name] for name in ("measurement", "comparison", "cell_label", "metric", "verdict"))
    values = [Value((test, drive), *others) for test, drive, *others in zip(*columns, strict=True)]
    deltas = deltas.iloc[sorted(main_values(values))]
    kept: list[str] = []
    shown: set[tuple[str, str]] = set()
    lines = 0
    for metric in by_weight(deltas):
        of_metric = deltas[deltas["metric"] == metric]
        cells = set(zip(of_metric["measurement"], of_metric["cell_label"], strict=True))
        if cells <= shown and lines + len(of_metric) + 1 > _MOST_LINES:
            continue
        lines += len(of_metric) + 1
        shown |= cells
        kept.append(metric)
    return deltas[deltas["metric"].isin(kept)]


def looks(deltas: pd.DataFrame) -> dict[str, overlay.Look]:
    """Return the looks of the compared drives; the basis counts as a drive, the first by default."""
    all_drives = overlay.looks([*deltas["basis"], *deltas["comparison"]])
    return {drive: look for drive, look in all_drives.items() if (deltas["comparison"] == drive).any()}


def by_weight(deltas: pd.DataFrame) -> list[str]:
    """Return the metrics, the most informative first."""
    metrics = list(deltas["metric"].drop_duplicates())
    return sorted(metrics, key=lambda metric: _FIRST.index(metric) if metric in _FIRST else len(_FIRST))


@dataclass(frozen=True)
class Names:
    """Names of cells beside their rows."""

    of_cell: Mapping[str, str]
    """Wrapped name by cell label."""
    shared: str
    """Words that every label contains and the names therefore omit."""

    @property
    def lines(self) -> int:
        """Largest number of lines of a name."""
        return 1 + max(name.count("\n") for name in self.of_cell.values())


def names(labels: Iterable[str]) -> Names:
    """Return short labels unchanged, and the words in which long labels differ, wrapped."""
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
    """Positions on an axis that counts lines from the top."""

    of_cell: Mapping[tuple[str, ...], float]
    """Middle of each cell's lines, by the columns of KEY."""
    headings: Mapping[float, str]
    """Headings above the cells of each measurement and metric, by position."""
    lines: float
    """Total number of lines."""

    def cell_at(self, line: float) -> str:
        """Return measurement, metric and cell nearest to a line."""
        measurement, metric, cell = min(self.of_cell, key=lambda key: abs(self.of_cell[key] - line))
        return f"{measurement}: {short_name(metric)}, {cell}"


def rows(deltas: pd.DataFrame, lines_of_cell: int) -> Rows:
    """Place a heading for each measurement and metric, then its cells with `lines_of_cell` lines each."""
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
