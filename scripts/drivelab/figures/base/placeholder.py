"""Placeholder of a figure whose values are all left out, with the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import pandas as pd
from matplotlib.figure import Figure

from drivelab.analysis.exclusions import WHOLE
from drivelab.analysis.soundness import FAULTS, split
from drivelab.figures.base import style
from drivelab.figures.registry import ALL

_JUDGED = {
    "cells": ("unsound", "cell"),
    "replays": ("taint_reason", "run"),
    "application_runs": ("taint_reason", "run"),
}
"""Column with the reason for which rows of a table do not count, and the name of a row."""
JUDGED = (*_JUDGED, "exclusions")
"""Tables that can exclude values."""
_MOST = 6
_LINE_IN = 0.175


def reasons(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return what is left out of a figure's tables and why, a line per reason.

    The table `exclusions`, if given, adds whole recordings, and for tables without rows of recordings all exclusions of
    their measurements.
    """
    counts = Counter(
        (recording, reason.partition("; ")[0], what)
        for name, (column, what) in _JUDGED.items()
        if name in tables and column in tables[name]
        for recording, reason in tables[name].loc[tables[name][column].notna(), ["recording", column]].values
    )
    lines = [
        f"{fault}: {count} {what}{'' if count == 1 else 's'} of {recording}, {words}"
        for (recording, reason, what), count in counts.items()
        for fault, words in [split(reason)]
        if fault in FAULTS
    ]
    return [*lines, *(_of_exclusions(tables) if "exclusions" in tables else ())]


def _of_exclusions(tables: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    others = {name: table for name, table in tables.items() if name != "exclusions"}
    recordings = {recording for table in others.values() if "recording" in table for recording in table["recording"]}
    measurements = {
        measurement for name in ("deltas", "summary") if name in others for measurement in others[name]["measurement"]
    }
    for row in tables["exclusions"].itertuples():
        shown = row.recording in recordings or row.measurement in measurements or not (recordings or measurements)
        if shown and row.place == WHOLE:
            yield f"{row.fault}: {row.recording}, {row.words}"
        elif shown and not recordings:
            yield f"{row.fault}: {row.recording}, {row.place}, {row.words}"


@style.styled
def placeholder(name: str, lines: list[str]) -> Figure:
    """Return a figure with the title of `name`, an alarm that nothing is shown, and the first reasons."""
    more = [f"and {len(lines) - _MOST} more reasons, see what is left out"] if len(lines) > _MOST else []
    figure = style.new_figure(ALL[name].title if name in ALL else name, height_in=1.0)
    figure.subplots().set_axis_off()
    for line in [*lines[:_MOST], *more]:
        style.grow(figure, 2 * _LINE_IN)
        style.note(figure, line)
    style.alarm(figure, "NOTHING TO SHOW: the values are left out of all results")
    return figure
