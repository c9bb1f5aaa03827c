"""Shared parts of figures over several drives: looks of the drives, and rows that count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import selection, style

_LINE_IN = 0.18
_LINE_WIDTH = 0.003
"""Relative difference that the width of a line hides."""
_all_drives: ContextVar[tuple[str, ...]] = ContextVar("drives that there are, in order", default=())


@dataclass(frozen=True)
class Look:
    """Colour, marker and dash that distinguish a drive or a line."""

    colour: style.Colour
    marker: str
    dash: str
    size: float = 5.0
    """Size of the marker in points."""
    filled: bool = False
    """Whether the area below is filled."""


@contextmanager
def among(drives: Iterable[object]) -> Iterator[None]:
    """Give each drive the look that it has among all `drives`, also in figures that leave some out."""
    token = _all_drives.set(tuple(dict.fromkeys(map(str, drives))))
    try:
        yield
    finally:
        _all_drives.reset(token)


def looks(drives: Iterable[object]) -> dict[str, Look]:
    """Return the look of each drive by its place among all drives (`among`), else by first appearance."""
    shown = list(dict.fromkeys(map(str, drives)))
    names = list(dict.fromkeys((*_all_drives.get(), *shown)))
    return {name: look for name, look in told_apart(names, style.colours(len(names))).items() if name in shown}


def told_apart(names: Sequence[str], colours: Sequence[style.Colour]) -> dict[str, Look]:
    """Return a look for each name, in these colours."""
    return {
        name: Look(colour, style.MARKERS[place % len(style.MARKERS)], style.DASHES[place % len(style.DASHES)])
        for place, (name, colour) in enumerate(zip(names, colours, strict=True))
    }


def coinciding(table: pd.DataFrame, by: Sequence[str], values: Sequence[str]) -> str | None:
    """Return which drives have coinciding series, such as `op7-512e lies on op7`, or None.

    `table` has the columns drive, `by`, which identify a point of the figure, and `values`, its coordinates.
    """
    parts = table.astype(dict.fromkeys(values, float)).groupby("drive", sort=False)
    series = {str(drive): part.set_index(list(by))[list(values)].sort_index() for drive, part in parts}
    below: dict[str, str] = {}
    for drive, points in series.items():
        for other in (name for name in list(series)[: list(series).index(drive)] if name not in below):
            same = points.index.equals(series[other].index)
            if same and np.allclose(points, series[other], rtol=_LINE_WIDTH, atol=0, equal_nan=True):
                below[drive] = other
                break
    return ", ".join(f"{drive} lies on {other}" for drive, other in below.items()) or None


def note_coinciding(figure: Figure, table: pd.DataFrame, by: Sequence[str], values: Sequence[str]) -> None:
    """Add a note of the drives that coincide (see `coinciding`)."""
    if table["drive"].nunique() > 1 and (hidden := coinciding(table, by, values)):
        style.note(figure, hidden)
        style.grow(figure, _LINE_IN)


def soaks(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of soaks outside of phases."""
    return rows[(rows["kind"] == "soak") & rows["phase"].isna()]


def turns(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of soaks that repeat over values."""
    return rows[(rows["kind"] == "soak") & rows["phase_value"].notna()]


def last_soaks(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of each recording's last soak: the PTS takes its histogram after the drive has settled."""
    alone = soaks(rows)
    return alone[alone["step"] == alone.groupby("recording")["step"].transform("max")]


def bins_by_drive(latency_bins: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return each drive's bins with I/Os of its last soak; raises ValueError for several workloads or measurements."""
    selection.require(latency_bins, "latency_bins")
    bins = last_soaks(latency_bins)
    if bins.empty:
        raise ValueError("table 'latency_bins' has no soaks for this figure")
    bins = bins[bins["count"] > 0]
    for column in ("measurement", "workload"):
        selection.require_one(bins, column, "latency_bins")
    return {str(drive): part for drive, part in bins.groupby("drive", sort=False)}


def loop_values(cells: pd.DataFrame, steady_state: pd.DataFrame, metrics: list[str], by: list[str]) -> pd.DataFrame:
    """Return columns drive, `by` and `metrics`: values of each drive's loop cells, runs averaged.

    Raises ValueError for unsuitable tables and more than one measurement.
    """
    selection.require_one(cells, "measurement", "cells")
    parts = []
    for recording, part in cells.groupby("recording", sort=False):
        windows = steady_state[steady_state["recording"] == recording]
        loop = selection.loop_cells(part)
        parts.append(selection.cell_values(loop, windows, metrics, by).assign(drive=part["drive"].iloc[0]))
    return pd.concat(parts).groupby(["drive", *by], sort=False, as_index=False, dropna=False)[list(metrics)].mean()
