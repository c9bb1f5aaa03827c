"""Tables of soaks: the result of write saturation, and each soak from first to last slice."""

from __future__ import annotations

from typing import Any

import pandas as pd

from drivelab.analysis.detectors.drift import LEAST_DRIFT_PCT
from drivelab.analysis.values.saturation_values import LEAST_DROP
from drivelab.report.document import Cell
from drivelab.report.inputs import Inputs, Key, Row, each, rows_of
from drivelab.report.marks import taint_note
from drivelab.report.numbers import DASH, amount, duration, is_missing, number, percent
from drivelab.report.table import (
    Field,
    PageTable,
    Rows,
    cell,
    durations,
    fields,
    or_dash,
    percentages,
    signed,
    sizes,
    told_apart,
    words,
)
from drivelab.tables.labels import demand


def _soaks(inputs: Inputs, key: Key) -> Rows:
    return told_apart(inputs.of_key("saturation", key), "run", ", run {}")


def _level(row: Row) -> str:
    """Return the range of the level and its drift; say so if the drift makes it unsteady."""
    level_range = f"{number(row['level_low_iops'])}{DASH}{number(row['level_high_iops'])}"
    drift_pct = row["level_drift_pct"]
    if is_missing(drift_pct):
        return level_range
    drifts = not row["level_steady"] and abs(drift_pct) >= LEAST_DRIFT_PCT
    trend = f"still {'rises' if drift_pct > 0 else 'falls'}, " if drifts else ""
    return f"{level_range}, {trend}drift {percent(drift_pct, True)}"


saturation_table = PageTable(
    "saturation", "Write saturation: the cliff, and the level after it", _soaks,
    (
        words("Soak", lambda row: Cell(f"{row['cell_label']}{row['of']}", f"{row['slices']} slices")),
        words("Cliff", lambda row: "yes" if row["cliff"] else "none found"),
        Field("Cliff after", "cliff_time_s", duration, missing=DASH),
        Field("Written at the cliff", "cliff_bytes", amount, missing=DASH),
        *or_dash(cliff_drive_fills="Drive fills at the cliff", iops_before="IOPS before", iops_after="IOPS after"),
        Field("Level, IOPS", "level_iops", small=_level),
        *percentages(level_variation_pct="Variation of the level"),
        Field("Drift of the level", "level_drift_pct", signed,
              lambda row: "steady" if row["level_steady"] else "NOT steady",
              lambda row: "" if row["level_steady"] else "bad"),
        *fields(level_from_drive_fills="Level from, drive fills", drive_fills="Drive fills, all"),
    ),
    f"Cliff: where the IOPS first fall for good, by a factor of {LEAST_DROP:g} or more. The fall may take one slice or "
    "many; the cliff is at its steepest point. A rate that wanders and ends that much lower has a cliff too. IOPS "
    "before: average up to the cliff. IOPS after: average of the last fifth of the soak. Level: average over the "
    "counted slices; below it, the lowest and highest of five equal parts and the drift. Variation: standard deviation "
    "of the slices. Drift: rise of the least-squares line. Both are relative to the mean. Steady: the level keeps the "
    f"PTS limits and drifts by less than {LEAST_DRIFT_PCT:g} %; the PTS limits alone allow more drift. A drive fill is "
    "the user capacity written once by the host.",
)  # fmt: skip


def _parts(inputs: Inputs, key: Key) -> Rows:
    """Select a row for each soak step; its slices are rows of `cells`."""
    cells = inputs.frame_of("cells", key)
    slices = cells[cells["kind"] == "soak"] if len(cells) else cells
    if slices.empty:
        return []
    capacity_bytes, several = inputs.drive(key[0]).get("capacity_bytes"), slices["recording"].nunique() > 1
    parts = (part.sort_values("round") for _, part in slices.groupby(["recording", "step"], sort=False))
    return [_soak(part, several, capacity_bytes) for part in parts]


def _soak(part: pd.DataFrame, several: bool, capacity_bytes: Any) -> Row:
    first, last, iops = part.iloc[0], part.iloc[-1], part["iops"]
    written_bytes = int(part["bytes_written"].sum())
    turn = "" if is_missing(first.get("phase_value")) else f", {first['phase']} {first['phase_value']}"
    run = f", run {first['run']}" if several else ""
    return {
        "part": f"Part {int(first['step']) + 1}{turn}{run}",
        "workload": f"{first['workload']} {demand(int(first['threads']), int(first['queue_depth']))}",
        "slices": len(part), "runtime_s": part["runtime_s"].sum(), "bytes_written": written_bytes,
        "drive_fills": _drive_fills(written_bytes, capacity_bytes),
        "first_iops": first["iops"], "highest_iops": iops.max(), "lowest_iops": iops.min(), "last_iops": last["iops"],
        "mean_latency_us": last["mean_latency_us"], "max_latency_us": part["max_latency_us"].max(),
        "recording": first["recording"], "cells": rows_of(part),
    }  # fmt: skip


def _drive_fills(written_bytes: int, capacity_bytes: Any) -> Cell:
    if is_missing(capacity_bytes) or not isinstance(capacity_bytes, tuple):
        return cell(None if is_missing(capacity_bytes) else written_bytes / capacity_bytes)
    return Cell(each(lambda size_bytes: number(written_bytes / size_bytes), capacity_bytes))


soaks_table = PageTable(
    "soaks", "Soaks, from first to last slice", _parts,
    (
        words("Part", "part", "workload"), *fields(slices="Slices"), *durations(runtime_s="Duration"),
        *sizes(bytes_written="Written"),
        *fields(drive_fills="Drive fills", first_iops="IOPS, first slice", highest_iops="IOPS, highest",
                lowest_iops="IOPS, lowest", last_iops="IOPS, last slice",
                mean_latency_us="Mean latency, last slice, µs", max_latency_us="Maximum latency, µs"),
    ),
    lambda parts: "A drive fill is the user capacity written once by the host. Highest and lowest are single slices. "
    + taint_note(row for part in parts for row in part["cells"]),
)  # fmt: skip
