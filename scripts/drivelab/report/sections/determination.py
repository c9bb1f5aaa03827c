"""The steady-state determination data of a test, after the report pages of the PTS."""

from __future__ import annotations

from typing import Any

import pandas as pd

from drivelab.core.units import time_scale
from drivelab.report.inputs import Inputs, Key, Row, rows_of
from drivelab.report.measurement_outcome import taint_note
from drivelab.report.numbers import (
    DASH,
    MINUS,
    MISSING,
    heading,
    is_missing,
    number,
    unit_of,
)
from drivelab.report.sections.proof import asymptote, level_change, window_proof
from drivelab.report.table_fields import number_cell, percent_cell, scaled_cell, value_cell
from drivelab.report.view import Cell, Column, Table

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
    proofs = {_variable(row): window_proof(row, _evidence(cells, row)) for row in windows}
    columns, divisors = [Column("", numeric=False)], {}
    for row in windows:
        run = f" (run {row['run']})" if several else ""
        stored = unit_of(row["metric"], row["unit"])
        divisors[_variable(row)], unit = time_scale([min(row["values"])], stored)
        name = f"{row['variable']}: {heading(row['metric'], row['unit'])}"
        columns.append(Column(name.removesuffix(stored) + unit + run, download=name + run if unit != stored else ""))

    def scaled(row: Row, cell: Cell) -> Cell:
        return scaled_cell(cell, divisors[_variable(row)])

    return Table(
        id=f"{inputs.anchors[key]}-determination",
        caption="Steady-state determination data",
        columns=tuple(columns),
        rows=(
            _across("Steady state reached", windows, _reached),
            _across(
                "Window (rounds)",
                windows,
                lambda r: Cell(f"{r['window_start']}{DASH}{r['window_end']} of {r['rounds']}"),
            ),
            _across(
                "Values in the window",
                windows,
                lambda r: Cell(" · ".join(number(v / divisors[_variable(r)]) for v in r["values"]), tone="wrap"),
            ),
            _across("Average", windows, lambda r: scaled(r, value_cell(r["average"], proofs[_variable(r)]))),
            *(
                _across(f"{name} maximum {kind} excursion", windows, lambda r, c=cell, k=kind: scaled(r, c(r, k)))
                for kind in ("data", "slope")
                for name, cell in (("Allowed", _allowed), ("Measured", _excursion))
            ),
            _across("Least-squares fit (R: round)", windows, lambda r: _fit(r, divisors[_variable(r)])),
            _across(
                "Residual drift over the window", windows, lambda r: percent_cell(r["residual_drift_pct"], signed=True)
            ),
            _across("Fitted asymptote, from the average", windows, lambda r: Cell(asymptote(r))),
            _across("Second opinion: change of level", windows, lambda r: Cell(level_change(r))),
        ),
        note=taint_note(rows_of(cells)),
        sources=inputs.sources(row["recording"] for row in windows),
    )


def _variable(row: Row) -> tuple[str, int, str, str]:
    return row["recording"], row["step"], row["variable"], row["metric"]


def _evidence(cells: pd.DataFrame, row: Row) -> list[str]:
    """Return the directories of the cells in the window of a tracked variable."""
    if "directory" not in cells:
        return []
    of_row = (cells["recording"] == row["recording"]) & (cells["step"] == row["step"])
    directories = cells.loc[of_row & (cells["cell_label"] == row["variable"]), "directory"]
    return [f"{row['recording']}/{directory}" for directory in directories]


def _across(name: str, windows: list[Row], cell: Any) -> tuple[Cell, ...]:
    return (Cell(name), *(cell(row) for row in windows))


def _reached(row: Row) -> Cell:
    return Cell("YES", tone="good") if row["reached"] else Cell("NO", tone="bad")


def _allowed(row: Row, kind: str) -> Cell:
    return value_cell(row[f"allowed_{kind}_excursion"])


def _excursion(row: Row, kind: str) -> Cell:
    measured, allowed = row[f"measured_{kind}_excursion"], row[f"allowed_{kind}_excursion"]
    if is_missing(measured) or is_missing(allowed):
        return value_cell(measured)
    within = measured <= allowed
    return number_cell(measured, small="within" if within else "exceeded", tone="good" if within else "bad")


def _fit(row: Row, divisor: float) -> Cell:
    if is_missing(row["slope"]) or is_missing(row["intercept"]):
        return Cell(MISSING, tone="missing")
    sign = MINUS if row["intercept"] < 0 else "+"
    return Cell(f"{number(row['slope'] / divisor)} · R {sign} {number(abs(row['intercept']) / divisor)}")
