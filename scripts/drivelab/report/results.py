"""The tables of a page: steady-state determination, then the results in the order of the page."""

from __future__ import annotations

from typing import Any

import pandas as pd

from drivelab.report.all_numbers import all_numbers
from drivelab.report.application_runs import application_runs_table
from drivelab.report.demand_tables import demand_tables, point_table
from drivelab.report.inputs import Inputs, Key, Row, rows_of
from drivelab.report.matrices import matrices
from drivelab.report.number_cells import number_cell, percent_cell, value_cell
from drivelab.report.numbers import (
    DASH,
    MINUS,
    MISSING,
    heading,
    is_missing,
    number,
)
from drivelab.report.proof import window_proof
from drivelab.report.recovery_tables import recovery_tables
from drivelab.report.replay_fidelity import fidelity_table, mapping_table
from drivelab.report.replay_load import operations_table, streams_table
from drivelab.report.replay_result import passes_table
from drivelab.report.replay_runs import run_latencies_table, runs_table
from drivelab.report.saturation import saturation_table, soaks_table
from drivelab.report.scores import best_runs_table, merit_table, nines_table
from drivelab.report.taint import taint_note
from drivelab.report.view import Cell, Column, Table
from drivelab.report.window_cells import in_windows


def determination(inputs: Inputs, key: Key) -> Table | None:
    """Return the steady-state determination data: a column per tracked variable and recording."""
    windows = inputs.of_key("steady_state", key)
    if not windows:
        return None
    several = len({row["recording"] for row in windows}) > 1
    cells = in_windows(inputs, key, tracked=True)
    proofs = {_variable(row): window_proof(row, _evidence(cells, row)) for row in windows}
    columns = [Column("", numeric=False)]
    for row in windows:
        run = f" (run {row['run']})" if several else ""
        columns.append(Column(f"{row['variable']}: {heading(row['metric'], row['unit'])}{run}"))
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
                "Values in the window", windows, lambda r: Cell(" · ".join(number(v) for v in r["values"]), tone="wrap")
            ),
            _across("Average", windows, lambda r: value_cell(r["average"], proofs[_variable(r)])),
            _across("Allowed maximum data excursion", windows, lambda r: value_cell(r["allowed_data_excursion"])),
            _across("Measured maximum data excursion", windows, lambda r: _excursion(r, "data")),
            _across("Allowed maximum slope excursion", windows, lambda r: value_cell(r["allowed_slope_excursion"])),
            _across("Measured maximum slope excursion", windows, lambda r: _excursion(r, "slope")),
            _across("Least-squares fit (R: round)", windows, _fit),
            _across(
                "Residual drift over the window", windows, lambda r: percent_cell(r["residual_drift_pct"], signed=True)
            ),
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


def _excursion(row: Row, kind: str) -> Cell:
    measured, allowed = row[f"measured_{kind}_excursion"], row[f"allowed_{kind}_excursion"]
    if is_missing(measured) or is_missing(allowed):
        return value_cell(measured)
    within = measured <= allowed
    return number_cell(measured, small="within" if within else "exceeded", tone="good" if within else "bad")


def _fit(row: Row) -> Cell:
    if is_missing(row["slope"]) or is_missing(row["intercept"]):
        return Cell(MISSING, tone="missing")
    sign = MINUS if row["intercept"] < 0 else "+"
    return Cell(f"{number(row['slope'])} · R {sign} {number(abs(row['intercept']))}")


def result_tables(inputs: Inputs, key: Key) -> tuple[Table, ...]:
    """Return the result tables: block size by R/W mix, special tables, all values."""
    return (
        *matrices(inputs, key),
        *demand_tables(inputs, key),
        *recovery_tables(inputs, key),
        *(
            table
            for table in (
                point_table(inputs, key),
                merit_table(inputs, key),
                best_runs_table(inputs, key),
                nines_table(inputs, key),
                saturation_table(inputs, key),
                soaks_table(inputs, key),
                fidelity_table(inputs, key),
                passes_table(inputs, key),
                mapping_table(inputs, key),
                operations_table(inputs, key),
                streams_table(inputs, key),
                streams_table(inputs, key, "process"),
                runs_table(inputs, key),
                run_latencies_table(inputs, key),
                application_runs_table(inputs, key),
                all_numbers(inputs, key),
            )
            if table
        ),
    )
