"""The steady-state determination data of a test, after the report pages of the PTS."""

from __future__ import annotations

from functools import partial

import pandas as pd

from drivelab.core.grouping import grouped
from drivelab.core.units import time_scale
from drivelab.report.document import Cell, Proof, Table
from drivelab.report.inputs import Inputs, Key, Row, rows_of
from drivelab.report.marks import taint_note
from drivelab.report.numbers import DASH, MINUS, heading, is_missing, number, text, unit_of
from drivelab.report.sections.proof import asymptote
from drivelab.report.table import Field, cell, scaled, signed, table, words

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
    places = grouped(rows_of(cells), lambda cell: (cell["recording"], cell["step"], cell["cell_label"]))
    columns = [words("", lambda field: field.heading)]
    for row in windows:
        stored, run = unit_of(row["metric"], row["unit"]), f" (run {row['run']})" if several else ""
        divisor, unit = time_scale([min(row["values"])], stored)
        name = f"{row['variable']}: {heading(row['metric'], row['unit'])}"
        of_row = places.get((row["recording"], row["step"], row["variable"]), [])
        shown = partial(_of_window, {**row, "divisor": divisor, "proof": _proof(row, of_row)})
        downloaded = name + run if unit != stored else ""
        columns.append(Field(name.removesuffix(stored) + unit + run, shown, text, download=downloaded))
    return table(f"{inputs.anchors[key]}-determination", "Steady-state determination data", columns, _FIELDS,
                 taint_note(rows_of(cells)), sources=inputs.sources_of(windows))  # fmt: skip


def _of_window(row: Row, field: Field) -> Cell:
    return field.cell(row)


def _proof(row: Row, cells: list[Row]) -> Proof:
    """Return the provenance of a tracked variable: the column of the table, in the unit of the tables."""
    stored = {**row, "divisor": 1.0, "proof": None}
    return Proof(
        title=f"{row['drive']}, {row['measurement']}, {row['variable']}: {heading(row['metric'], row['unit'])}",
        facts=tuple((field.heading, field.cell(stored).text) for field in _FIELDS),
        recordings=(str(row["recording"]),),
        evidence=tuple(
            dict.fromkeys(f"{row['recording']}/{cell['directory']}" for cell in cells if "directory" in cell)
        ),
    )


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
    words("Steady state reached", lambda row: Cell("YES", tone="good") if row["reached"] else Cell("NO", tone="bad")),
    words("Window (rounds)", lambda row: f"{row['window_start']}{DASH}{row['window_end']} of {row['rounds']}"),
    words(
        "Values in the window",
        lambda row: Cell(" · ".join(number(value / row["divisor"]) for value in row["values"]), tone="wrap"),
    ),
    Field("Average", lambda row: scaled(cell(row["average"], proof=row["proof"]), row["divisor"])),
    *(
        Field(f"{side.capitalize()} maximum {kind} excursion", partial(_excursion, side=side, kind=kind))
        for kind in ("data", "slope")
        for side in ("allowed", "measured")
    ),
    Field("Least-squares fit (R: round)", _fit),
    Field("Residual drift over the window", "residual_drift_pct", signed),
    words("Fitted asymptote, from the average", asymptote),
)
