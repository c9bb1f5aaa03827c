"""The steady-state determination data of a test, after the report pages of the PTS."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pandas as pd

from drivelab.core.units import time_scale
from drivelab.report.document import Cell, Column, Table
from drivelab.report.inputs import Inputs, Key, Row, rows_of
from drivelab.report.marks import taint_note
from drivelab.report.numbers import DASH, MINUS, heading, is_missing, number, unit_of
from drivelab.report.sections.proof import asymptote, level_change, window_proof
from drivelab.report.table import Field, cell, scaled, sideways, signed, table, words

_STEP = ["recording", "step"]
_ENDS = ["window_start", "window_end"]


def in_windows(inputs: Inputs, key: Key, *, tracked: bool = False) -> pd.DataFrame:
    """Return rows of `cells` whose round is in the window; with `tracked`, only tracked variables."""
    windows = inputs.frame_of("steady_state", key)
    cells = inputs.frame_of("cells", key)
    if windows.empty or cells.empty:
        return cells.iloc[:0]
    by = [*_STEP, "cell_label"] if tracked else _STEP
    ends = windows.rename(columns={"variable": "cell_label"})[[*by, *_ENDS]].drop_duplicates(by)
    merged = cells.merge(ends, on=by)
    return merged[merged["round"].between(merged["window_start"], merged["window_end"])]


def determination(inputs: Inputs, key: Key) -> Table | None:
    """Return the steady-state determination data: a column per tracked variable and recording."""
    windows = inputs.of_key("steady_state", key)
    if not windows:
        return None
    several = len({row["recording"] for row in windows}) > 1
    cells = in_windows(inputs, key, tracked=True)
    rows, columns = [], [Column("", numeric=False)]
    for row in windows:
        stored, run = unit_of(row["metric"], row["unit"]), f" (run {row['run']})" if several else ""
        divisor, unit = time_scale([min(row["values"])], stored)
        name = f"{row['variable']}: {heading(row['metric'], row['unit'])}"
        columns.append(Column(name.removesuffix(stored) + unit + run, download=name + run if unit != stored else ""))
        rows.append({**row, "divisor": divisor, "proof": window_proof(row, _evidence(cells, row))})
    by_window = table(f"{inputs.anchors[key]}-determination", "Steady-state determination data", _FIELDS, rows,
                      taint_note(rows_of(cells)), sources=inputs.sources_of(windows))  # fmt: skip
    return replace(sideways(by_window), columns=tuple(columns))


def _evidence(cells: pd.DataFrame, row: Row) -> list[str]:
    """Return the directories of the cells in the window of a tracked variable."""
    if "directory" not in cells:
        return []
    of_row = (cells["recording"] == row["recording"]) & (cells["step"] == row["step"])
    directories = cells.loc[of_row & (cells["cell_label"] == row["variable"]), "directory"]
    return [f"{row['recording']}/{directory}" for directory in directories]


def _reached(row: Row) -> Cell:
    return Cell("YES", tone="good") if row["reached"] else Cell("NO", tone="bad")


def _values(row: Row) -> Cell:
    return Cell(" · ".join(number(value / row["divisor"]) for value in row["values"]), tone="wrap")


def _excursion(row: Row, side: str, kind: str) -> Cell:
    value, allowed = row[f"{side}_{kind}_excursion"], row[f"allowed_{kind}_excursion"]
    if side == "allowed" or is_missing(value) or is_missing(allowed):
        return scaled(cell(value), row["divisor"])
    small, tone = ("within", "good") if value <= allowed else ("exceeded", "bad")
    return scaled(cell(value, small=small, tone=tone), row["divisor"])


def _fit(row: Row) -> Cell:
    if is_missing(row["slope"]) or is_missing(row["intercept"]):
        return cell(None)
    sign = MINUS if row["intercept"] < 0 else "+"
    slope, intercept = row["slope"] / row["divisor"], abs(row["intercept"]) / row["divisor"]
    return Cell(f"{number(slope)} · R {sign} {number(intercept)}")


_FIELDS = (
    words("", "variable"),
    words("Steady state reached", _reached),
    words("Window (rounds)", lambda row: f"{row['window_start']}{DASH}{row['window_end']} of {row['rounds']}"),
    words("Values in the window", _values),
    Field("Average", lambda row: scaled(cell(row["average"], proof=row["proof"]), row["divisor"])),
    *(
        Field(f"{side.capitalize()} maximum {kind} excursion", partial(_excursion, side=side, kind=kind))
        for kind in ("data", "slope")
        for side in ("allowed", "measured")
    ),
    Field("Least-squares fit (R: round)", _fit),
    Field("Residual drift over the window", "residual_drift_pct", signed),
    words("Fitted asymptote, from the average", asymptote),
    words("Second opinion: change of level", level_change),
)
