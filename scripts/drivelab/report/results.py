"""The tables of a page: determination of steady state, results, write saturation, all numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drivelab.analysis.labels import demand
from drivelab.analysis.replay_metrics import SCORE_FORMULA
from drivelab.analysis.verdict import FAULTS
from drivelab.report.application_runs import application_runs_table
from drivelab.report.demand_tables import demand_tables, point_table
from drivelab.report.inputs import Inputs, Key, Row
from drivelab.report.matrices import matrices
from drivelab.report.numbers import (
    DASH,
    MINUS,
    MISSING,
    capital,
    duration,
    heading,
    is_missing,
    metric_order,
    number,
    percent,
    size,
    text,
)
from drivelab.report.recovery_tables import recovery_tables
from drivelab.report.replay_fidelity import fidelity_table, mapping_table
from drivelab.report.replay_load import operations_table, streams_table
from drivelab.report.replay_result import is_replay, passes_table
from drivelab.report.replay_runs import runs_table
from drivelab.report.scores import best_runs_table, merit_table, nines_table
from drivelab.report.taint import taint_mark, taint_note
from drivelab.report.verdict import value_cell
from drivelab.report.view import Cell, Column, Table

_MANY_ROWS = 12
"""A longer list of all numbers starts folded."""


def determination(inputs: Inputs, key: Key) -> Table | None:
    """Steady-state determination data: a column for each tracked variable of each recording."""
    windows = inputs.of_key("steady_state", key)
    if not windows:
        return None
    several = len({row["recording"] for row in windows}) > 1
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
            _across("Average", windows, lambda r: value_cell(r["average"])),
            _across("Allowed maximum data excursion", windows, lambda r: value_cell(r["allowed_data_excursion"])),
            _across("Measured maximum data excursion", windows, lambda r: _excursion(r, "data")),
            _across("Allowed maximum slope excursion", windows, lambda r: value_cell(r["allowed_slope_excursion"])),
            _across("Measured maximum slope excursion", windows, lambda r: _excursion(r, "slope")),
            _across("Least-squares fit, R the round", windows, _fit),
            _across(
                "Residual drift over the window", windows, lambda r: Cell(percent(r["residual_drift_pct"], signed=True))
            ),
        ),
        note=taint_note(_in_window(inputs, key, windows)),
        sources=inputs.sources(row["recording"] for row in windows),
    )


def _in_window(inputs: Inputs, key: Key, windows: list[Row]) -> list[Row]:
    """The cells that the windows are made of."""
    of_step = {(row["recording"], row["step"], row["variable"]): (row["window_start"], row["window_end"])
               for row in windows}  # fmt: skip
    found = []
    for cell in inputs.labelled_cells(key):
        first, last = of_step.get((cell["recording"], cell["step"], cell["cell_label"]), (1, 0))
        if first <= cell["round"] <= last:
            found.append(cell)
    return found


def _across(name: str, windows: list[Row], cell: Any) -> tuple[Cell, ...]:
    return (Cell(name), *(cell(row) for row in windows))


def _reached(row: Row) -> Cell:
    return Cell("YES", tone="good") if row["reached"] else Cell("NO", tone="bad")


def _excursion(row: Row, kind: str) -> Cell:
    measured, allowed = row[f"measured_{kind}_excursion"], row[f"allowed_{kind}_excursion"]
    if is_missing(measured) or is_missing(allowed):
        return value_cell(measured)
    within = measured <= allowed
    return Cell(number(measured), small="within" if within else "exceeded", tone="good" if within else "bad")


def _fit(row: Row) -> Cell:
    if is_missing(row["slope"]) or is_missing(row["intercept"]):
        return Cell(MISSING, tone="missing")
    sign = MINUS if row["intercept"] < 0 else "+"
    return Cell(f"{number(row['slope'])} * R {sign} {number(abs(row['intercept']))}")


def result_tables(inputs: Inputs, key: Key) -> tuple[Table, ...]:
    """Block size by R/W mix for what the test is about, then special tables, then all numbers."""
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
                _saturation(inputs, key),
                fidelity_table(inputs, key),
                passes_table(inputs, key),
                mapping_table(inputs, key),
                operations_table(inputs, key),
                streams_table(inputs, key),
                streams_table(inputs, key, "process"),
                runs_table(inputs, key),
                application_runs_table(inputs, key),
                _everything(inputs, key),
            )
            if table
        ),
    )


def _saturation(inputs: Inputs, key: Key) -> Table | None:
    """What a soak showed, a row for each step: the slices are the cells."""
    slices = [row for row in inputs.of_key("cells", key) if row["kind"] == "soak"]
    if not slices:
        return None
    capacity_bytes: Any = inputs.drive(key[0]).get("capacity_bytes")
    several = len({row["recording"] for row in slices}) > 1
    rows = []
    for recording, step in dict.fromkeys((row["recording"], row["step"]) for row in slices):
        part = [row for row in slices if (row["recording"], row["step"]) == (recording, step)]
        part.sort(key=lambda row: row["round"])
        written = sum(int(row["bytes_written"]) for row in part)
        iops = [row["iops"] for row in part]
        run = f", run {part[0]['run']}" if several else ""
        rows.append(
            (
                Cell(f"{_part(part[0])}{run}", small=_workload(part[0])),
                Cell(number(len(part))),
                Cell(duration(sum(row["runtime_s"] for row in part))),
                Cell(size(written)),
                Cell(MISSING, tone="missing") if is_missing(capacity_bytes) else Cell(number(written / capacity_bytes)),
                *(value_cell(value) for value in (iops[0], max(iops), min(iops), iops[-1])),
                value_cell(part[-1]["mean_latency_us"]),
                value_cell(max(row["max_latency_us"] for row in part)),
            )
        )
    names = ("Part", "Slices", "Duration", "Written", "Drive fills", "IOPS, first slice", "IOPS, highest",
             "IOPS, lowest", "IOPS, last slice", "Mean latency, last slice, µs", "Maximum latency, µs")  # fmt: skip
    return Table(
        id=f"{inputs.anchors[key]}-saturation",
        caption="Soaks, from first to last slice",
        columns=tuple(Column(name, numeric=number_ > 0) for number_, name in enumerate(names)),
        rows=tuple(rows),
        note="A drive fill is the user capacity written once by the host. Highest and lowest are of single slices. "
        + taint_note(slices),
        sources=inputs.sources(row["recording"] for row in slices),
    )


def _part(row: Row) -> str:
    """Which soak a slice is of: its step, and its turn where it is repeated."""
    turn = row.get("phase_value")
    if is_missing(turn):
        return f"Part {int(row['step']) + 1}"
    return f"Part {int(row['step']) + 1}, {row['phase']} {turn}"


def _workload(row: Row) -> str:
    return f"{row['workload']} {demand(int(row['threads']), int(row['queue_depth']))}"


def _everything(inputs: Inputs, key: Key) -> Table | None:
    """All of the summary: a row for each cell, a column for each metric, with spread and relative standard error."""
    summary = inputs.of_key("summary", key)
    if all(is_replay(row) for row in summary):  # what the page begins with says it all
        return None
    metrics = sorted({row["metric"]: row["unit"] for row in summary}.items(), key=lambda item: metric_order(item[0]))
    rows = []
    for label, statistic in dict.fromkeys((row["cell_label"], row["statistic"]) for row in summary):
        of_cell = {row["metric"]: row for row in summary if (row["cell_label"], row["statistic"]) == (label, statistic)}
        verdicts = dict.fromkeys(text(row["verdict"]) for row in of_cell.values())
        counts = dict.fromkeys(number(row["n"]) for row in of_cell.values())
        rows.append(
            (
                Cell(str(label), small=str(statistic)),
                *(_summary_cell(of_cell.get(metric)) for metric, _ in metrics),
                Cell("; ".join(counts)),
                Cell(
                    "; ".join(verdicts),
                    small=_reasons(of_cell.values()),
                    tone="bad" if verdicts.keys() & set(FAULTS) else "",
                ),
            )
        )
    return Table(
        id=f"{inputs.anchors[key]}-all",
        caption="All numbers of this test",
        columns=(
            Column("Cell", numeric=False),
            *(Column(capital(heading(metric, unit))) for metric, unit in metrics),
            Column("n"),
            Column("Verdict", numeric=False),
        ),
        rows=tuple(rows),
        note="n: recordings, or warm runs of a replay or an application, that a value stands on. Below a value: lowest "
        "to highest of what it stands on (within the recording if that is one), and the relative standard error if "
        "there is one." + (f" {capital(SCORE_FORMULA)}." if any(metric == "score" for metric, _ in metrics) else ""),
        sources=inputs.sources(name for row in summary for name in row["recordings"]),
        collapsed=len(rows) > _MANY_ROWS,
    )


def _reasons(rows: Iterable[Row]) -> str:
    return "; ".join(dict.fromkeys(str(row["taint_reason"]) for row in rows if taint_mark(row)))


def _summary_cell(row: Row | None) -> Cell:
    if row is None:
        return Cell(DASH)
    parts = []
    if not is_missing(row["spread_low"]) and not is_missing(row["spread_high"]):
        parts.append(f"{number(row['spread_low'])}{DASH}{number(row['spread_high'])}")
    if not is_missing(row["rse_pct"]):
        parts.append(f"RSE {percent(row['rse_pct'])}")
    value = value_cell(row["value"])
    return Cell(value.text, small=", ".join(parts), tone=value.tone)
