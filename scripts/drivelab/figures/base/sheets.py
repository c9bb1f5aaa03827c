"""Draw figures from tables, labelled with their subject and the status of the data: one, or all of a measurement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from drivelab.analysis.exclusions import WHOLE, counted
from drivelab.core.units import counted as named_count
from drivelab.criteria.soundness import FAULTS, split
from drivelab.figures.base import overlay, selection, style
from drivelab.figures.kinds import trace
from drivelab.figures.registry import ALL, FIGURES, TRACE
from drivelab.tables.labels import named


@style.styled
def render(name: str, tables: Mapping[str, pd.DataFrame], subject: str = "", **options: object) -> Figure:
    """Draw the figure `name` from `tables` and label it with `subject`, or its trace, and the status of its data.

    `options` are arguments of the figure's function, for example `metric="max_latency_us"`. The tables must have only
    rows of the figure, as a single row can require a badge. Raises ValueError for an unknown name, a missing table and
    tables that the figure refuses.
    """
    if name not in ALL:
        raise ValueError(f"there is no figure '{name}'; there are {', '.join(ALL)}")
    kind = ALL[name]
    missing = [table for table in kind.required if table not in tables]
    if missing:
        raise ValueError(f"figure '{name}' needs the table(s) {', '.join(missing)}")
    status = tables[kind.status_table]
    selection.require(status, kind.status_table)
    figure = kind.function(*(tables[table] for table in kind.tables), **{**kind.options, **options})
    if TRACE in kind.when:
        selection.require_one(status, "trace", kind.status_table)
        trace.label(figure, status.iloc[0])
        return figure
    if kind.status_table == "replays":
        marks = [mark for text in status["trace_marks"].dropna() for mark in text.split(", ")]
        style.badges_of_trace(figure, marks, partial=status["partial"].astype(bool).any())
    style.label_by(figure, status, subject)
    shown = tables.get(kind.values, pd.DataFrame())
    if len(shown):
        rows = selection.window_rows(shown, tables["steady_state"]) if kind.of_window else shown
        doubts = "; ".join(filter(None, (selection.tainted(rows), selection.host_limited(rows))))
        if doubts:
            style.note(figure, doubts)
    return figure


_JUDGED = {
    "cells": ("unsound", "cell"),
    "replays": ("taint_reason", "run"),
    "application_runs": ("taint_reason", "run"),
    "load_rates": ("taint_reason", "rate"),
}
"""Column with the reason for which rows of a table do not count, and the name of a row."""
_MOST = 6


def reasons(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return what is left out of a figure's tables and why, a line per reason.

    The table `exclusions`, if given, adds whole recordings, and for tables without rows of recordings all exclusions of
    their measurements.
    """
    counts = Counter(
        (recording, *split(reason.partition("; ")[0]), what)
        for name, (column, what) in _JUDGED.items()
        if name in tables and column in tables[name]
        for recording, reason in tables[name].loc[tables[name][column].notna(), ["recording", column]].values
    )
    lines = [f"{fault}: {named_count(count, what)} of {recording}, {words}"
             for (recording, fault, words, what), count in counts.items() if fault in FAULTS]  # fmt: skip
    shown = [table for name, table in tables.items() if name != "exclusions"]
    recordings = {recording for table in shown if "recording" in table for recording in table["recording"]}
    measurements = {one for name in ("deltas", "summary") if name in tables for one in tables[name]["measurement"]}
    for row in tables["exclusions"].itertuples() if "exclusions" in tables else ():
        if row.recording in recordings or row.measurement in measurements or not (recordings or measurements):
            if row.place == WHOLE:
                lines.append(f"{row.fault}: {row.recording}, {row.words}")
            elif not recordings:
                lines.append(f"{row.fault}: {row.recording}, {row.place}, {row.words}")
    return lines


@style.styled
def placeholder(name: str, lines: list[str]) -> Figure:
    """Return a figure with the title of `name`, an alarm that nothing is shown, and the first reasons."""
    more = [f"and {len(lines) - _MOST} more reasons, see what is left out"] if len(lines) > _MOST else []
    figure = style.new_figure(ALL[name].title if name in ALL else name, height_in=0.5)
    for line in [*lines[:_MOST], *more]:
        style.note(figure, line)
    style.alarm(figure, "NOTHING TO SHOW: the values are left out of all results")
    return figure


def sheets(names: Iterable[str], tables: Mapping[str, pd.DataFrame], subject: str) -> Iterator[tuple[str, Figure]]:
    """Yield the figures `names` of one measurement's `tables`, see `draw`."""
    lost, whole = reasons(tables), tables
    if "exclusions" in tables:
        out = tables["exclusions"]
        tables = {name: counted(table, out) if "recording" in table else table for name, table in tables.items()}
    if "cells" in tables:
        tables = {**tables, "cells": named(tables["cells"])}
    for name in names:
        with overlay.among(whole[FIGURES[name].status_table]["drive"]):  # exclusions change no colour
            yield name, _what_is_left(name, tables, subject, lost, whole)


@style.styled
def draw(
    names: Iterable[str], tables: Mapping[str, pd.DataFrame], subject: str, folder: Path, *, png: bool = True
) -> None:
    """Draw the figures `names` of one measurement's `tables`, and save each in `folder` (`style.save`).

    Figures of loops show the first tracked metric, if there is one. Recordings that table `exclusions`, if given,
    excludes as a whole are not shown. A figure without remaining values becomes a placeholder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in sheets(names, tables, subject):
        style.save(figure, folder / name, png=png)


@style.styled
def draw_trace(names: Iterable[str], tables: Mapping[str, pd.DataFrame], folder: Path, *, png: bool = True) -> None:
    """Draw the figures `names` of one trace, and save each in `folder` (`style.save`)."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        style.save(render(name, tables), folder / name, png=png)


def _what_is_left(
    name: str, tables: Mapping[str, pd.DataFrame], subject: str, lost: list[str], whole: Mapping[str, pd.DataFrame]
) -> Figure:
    """Return the figure, or a placeholder if the exclusions `lost` left too little of the tables `whole`."""
    shown, options = _rows(name, tables), {}
    if name in ("measurement_2d", "measurement_3d", "repeats") and len(tables["steady_state"]):
        options["metric"] = tables["steady_state"]["metric"].iloc[0]
    if not lost or len(shown[FIGURES[name].status_table]):
        try:
            return render(name, shown, subject, **options)
        except ValueError as error:
            if not lost:  # with all values, an error is a bug
                raise
            lost = [*lost, f"the remaining values are not enough: {error}"]
    labels = pd.concat([table[["reduced", "virtual", "clock"]] for table in whole.values() if "clock" in table])
    figure = placeholder(name, lost)
    style.label_by(figure, labels, subject)
    return figure


def _rows(name: str, tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return the tables with only the steps of the figure, as a protocol may have loops and soaks."""
    kind = FIGURES[name]
    chosen = {table: tables[table] for table in dict.fromkeys((*kind.required, kind.values))}
    chosen |= {table: ROWS[kind.rows](chosen[table]) for table in ("cells", "latency_bins") if table in chosen}
    if kind.one_loop:
        first = chosen["steady_state"]["step"].min()
        chosen |= {table: chosen[table][chosen[table]["step"] == first] for table in ("cells", "steady_state")}
    return chosen


ROWS: Mapping[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "": lambda rows: rows,
    "loops": lambda rows: rows[rows["kind"] == "loop"],
    "soaks": overlay.soaks,
    "last_soak": overlay.last_soaks,
    "turns": lambda rows: overlay.last_soaks(rows) if overlay.turns(rows).empty else overlay.turns(rows),
}
"""Functions that select the rows of a figure, by the `rows` of its declaration."""
