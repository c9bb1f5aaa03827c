"""Tables of soaks: the result of write saturation, and each soak from first to last slice."""

from __future__ import annotations

from typing import Any

import pandas as pd

from drivelab.analysis.detectors.drift import LEAST_DRIFT_PCT
from drivelab.analysis.values.saturation_values import LEAST_DROP
from drivelab.report.inputs import Inputs, Key, Row, Several, each, rows_of
from drivelab.report.measurement_outcome import taint_note
from drivelab.report.numbers import DASH, MISSING, is_missing, number, percent
from drivelab.report.table_fields import duration_cell, number_cell, percent_cell, size_cell, value_cell
from drivelab.report.view import Cell, Column, Table
from drivelab.tables.labels import demand


def saturation_table(inputs: Inputs, key: Key) -> Table | None:
    """Return cliff and level of each soak that saturates the drive; None if no soak does."""
    rows = inputs.of_key("saturation", key)
    if not rows:
        return None
    several = len({row["recording"] for row in rows}) > 1
    names = ("Soak", "Cliff", "Cliff after", "Written at the cliff", "Drive fills at the cliff", "IOPS before",
             "IOPS after", "Level, IOPS", "Variation of the level", "Drift of the level", "Level from, drive fills",
             "Drive fills, all")  # fmt: skip
    texts = {"Soak", "Cliff"}
    return Table(
        id=f"{inputs.anchors[key]}-saturation",
        caption="Write saturation: the cliff, and the level after it",
        columns=tuple(Column(name, numeric=name not in texts) for name in names),
        rows=tuple(_saturation(row, f", run {row['run']}" if several else "") for row in rows),
        note=f"Cliff: where the IOPS first fall for good, by a factor of {LEAST_DROP:g} or more. The fall may take one "
        "slice or many; the cliff is at its steepest point. A rate that wanders and ends that much lower has a cliff "
        "too. IOPS before: average up to the cliff. IOPS after: average of the last fifth of the soak. Level: average "
        "over the counted slices; below it, the lowest and highest of five equal parts and the drift. Variation: "
        "standard deviation of the slices. Drift: rise of the least-squares line. Both are relative to the mean. "
        f"Steady: the level keeps the PTS limits and drifts by less than {LEAST_DRIFT_PCT:g} %; the PTS limits alone "
        "allow more drift. A drive fill is the user capacity written once by the host.",
        sources=inputs.sources(row["recording"] for row in rows),
    )


def _saturation(row: Row, run: str) -> tuple[Cell, ...]:
    steady = bool(row["level_steady"])
    return (
        Cell(f"{row['cell_label']}{run}", small=f"{row['slices']} slices"),
        Cell("yes" if row["cliff"] else "none found"),
        *(
            (
                duration_cell(row["cliff_time_s"]),
                size_cell(row["cliff_bytes"]),
                *(number_cell(row[name]) for name in ("cliff_drive_fills", "iops_before", "iops_after")),
            )
            if row["cliff"]
            else (Cell(DASH),) * 5
        ),
        number_cell(row["level_iops"], _level(row)),
        percent_cell(row["level_variation_pct"]),
        percent_cell(row["level_drift_pct"], True, "steady" if steady else "NOT steady", "" if steady else "bad"),
        number_cell(row["level_from_drive_fills"]),
        number_cell(row["drive_fills"]),
    )


def _level(row: Row) -> str:
    """Return the range of the level and its drift; say so if the drift makes it unsteady."""
    level_range = f"{number(row['level_low_iops'])}{DASH}{number(row['level_high_iops'])}"
    drift_pct = row["level_drift_pct"]
    if is_missing(drift_pct):
        return level_range
    drifts = not row["level_steady"] and abs(drift_pct) >= LEAST_DRIFT_PCT
    trend = f"still {'rises' if drift_pct > 0 else 'falls'}, " if drifts else ""
    return f"{level_range}, {trend}drift {percent(drift_pct, True)}"


def soaks_table(inputs: Inputs, key: Key) -> Table | None:
    """Return a row for each soak step; its slices are rows of `cells`."""
    cells = inputs.frame_of("cells", key)
    slices = cells[cells["kind"] == "soak"] if len(cells) else cells
    if slices.empty:
        return None
    capacity_bytes: Any = inputs.drive(key[0]).get("capacity_bytes")
    several = slices["recording"].nunique() > 1
    rows = []
    for _, part in slices.groupby(["recording", "step"], sort=False):
        part = part.sort_values("round")
        first, last = part.iloc[0], part.iloc[-1]
        written = int(part["bytes_written"].sum())
        run = f", run {first['run']}" if several else ""
        rows.append(
            (
                Cell(f"{_part(first)}{run}", small=_workload(first)),
                number_cell(len(part)),
                duration_cell(part["runtime_s"].sum()),
                size_cell(written),
                _drive_fills(written, capacity_bytes),
                *(value_cell(value) for value in (first["iops"], part["iops"].max(), part["iops"].min(), last["iops"])),
                value_cell(last["mean_latency_us"]),
                value_cell(part["max_latency_us"].max()),
            )
        )
    names = ("Part", "Slices", "Duration", "Written", "Drive fills", "IOPS, first slice", "IOPS, highest",
             "IOPS, lowest", "IOPS, last slice", "Mean latency, last slice, µs", "Maximum latency, µs")  # fmt: skip
    return Table(
        id=f"{inputs.anchors[key]}-soaks",
        caption="Soaks, from first to last slice",
        columns=tuple(Column(name, numeric=number_ > 0) for number_, name in enumerate(names)),
        rows=tuple(rows),
        note="A drive fill is the user capacity written once by the host. Highest and lowest are single slices. "
        + taint_note(rows_of(slices)),
        sources=inputs.sources(slices["recording"].unique()),
    )


def _drive_fills(written_bytes: int, capacity_bytes: Any) -> Cell:
    if is_missing(capacity_bytes):
        return Cell(MISSING, tone="missing")
    if isinstance(capacity_bytes, Several):
        return Cell(each(lambda size_bytes: number(written_bytes / size_bytes), capacity_bytes))
    return number_cell(written_bytes / capacity_bytes)


def _part(row: pd.Series) -> str:
    """Name the soak of a slice: its step, and its turn if the step is repeated."""
    turn = row.get("phase_value")
    if is_missing(turn):
        return f"Part {int(row['step']) + 1}"
    return f"Part {int(row['step']) + 1}, {row['phase']} {turn}"


def _workload(row: pd.Series) -> str:
    return f"{row['workload']} {demand(int(row['threads']), int(row['queue_depth']))}"
