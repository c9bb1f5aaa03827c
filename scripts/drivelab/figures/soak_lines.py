"""What the two saturation figures share: the slices of a soak as a line per drive and run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd
from matplotlib.axes import Axes

from drivelab.figures import selection, style

COLUMNS = (
    "recording",
    "drive",
    "measurement",
    "run",
    "step",
    "kind",
    "pattern",
    "read_share_pct",
    "block_size_bytes",
    "workload",
    "round",
)


def slices(cells: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
    """The soaks' slices of one measurement and one workload; raises ValueError for anything else."""
    selection.require(cells, (*COLUMNS, *columns), "cells")
    soak = selection.rows(cells, "cells", kind="soak")
    for column in ("measurement", "pattern", "read_share_pct", "block_size_bytes", "workload"):
        selection.require_one(soak, column, "cells")
    return soak


def lines(soak: pd.DataFrame, x: str) -> Iterator[tuple[str, str, style.Colour, pd.DataFrame]]:
    """Yield drive, legend entry, colour and slices in the order of `x` for each recording."""
    drives = list(soak["drive"].drop_duplicates())
    colour_of = dict(zip(drives, style.colours(len(drives)), strict=True))
    for drive in drives:
        of_drive = soak[soak["drive"] == drive]
        recordings = of_drive.sort_values("run")["recording"].drop_duplicates()
        for recording in recordings:
            line = of_drive[of_drive["recording"] == recording].sort_values(x)
            name = drive if len(recordings) == 1 else f"{drive}, run {line['run'].iloc[0]}"
            yield drive, name, colour_of[drive], line


def plot(axes: Axes, x: pd.Series, y: pd.Series, colour: style.Colour, number: int, name: str) -> None:
    """One line; on a long one only some points are marked, else the markers would hide it."""
    every = 1 if len(x) <= 60 else (number * len(x) // 100, len(x) // 12)
    short = every == 1
    axes.plot(
        x,
        y,
        color=colour,
        linewidth=1.4 if short else 1.0,
        marker=style.MARKERS[number % 10],
        markevery=every,
        markersize=4 if short else 6,
        markeredgecolor=colour if short else "white",
        label=name,
        gid="line",
    )


def mark_cliffs(axes: Axes, cliffs: Mapping[str, float], colour_of: Mapping[str, style.Colour]) -> None:
    """A dotted line where each drive's rate falls off, in display units."""
    unknown = set(cliffs) - set(colour_of)
    if unknown:
        raise ValueError(f"a write cliff is given for {', '.join(sorted(unknown))}, but 'cells' holds no such drive")
    name: str | None = "write cliff"
    for drive, position in cliffs.items():
        axes.axvline(position, color=colour_of[drive], linestyle=(0, (1, 1.5)), linewidth=1.6, label=name, gid="cliff")
        name = None
