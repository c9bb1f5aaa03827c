"""Make tables of one recording of a virtual drive: known truth for detectors."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pandas as pd
from rows import key, table

from drivelab.fio.cell_evidence import bin_indices, bin_value
from drivelab.plan.cell import Cell
from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.model import DriveModel
from drivelab.virtual_clock.workload import closed_loop

BEGAN = pd.Timestamp("2026-01-01T00:00:00Z")
SLICE_S = 10
FAST: dict[str, Any] = {"command_us": 500, "capacity": "8MiB", "over_provisioning": "28%"}
"""2000 IOPS for any reads: the controller is the limit."""


def soak_tables(seconds: int, *, read_share: int = 100, depth: int = 4, **effects: Any) -> dict[str, pd.DataFrame]:
    """Return the tables of a soak of a drive with `effects`; telemetry has a sample each second."""
    model = DriveModel.from_mapping("virtual", {"serial": "V", **FAST, **effects})
    drive = FlashDrive(model)
    cell = Cell("random", read_share, 4096, 1, depth, runtime_s=float(seconds))
    rows: list[tuple[float, float, bool]] = []
    telemetry: dict[int, dict[str, float]] = {}
    for done_us, issued_us, reads, _ in closed_loop(drive, cell, 0.0, Random(1)):
        rows.append((done_us / 1e6, (done_us - issued_us) * 1000, reads))
        telemetry.setdefault(int(done_us // 1e6), drive.told(done_us))
    done_s, latency_ns = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    counts = np.bincount(done_s.astype(int), minlength=seconds)[:seconds]
    where = {**key("virtual", "soak"), "step": 0, "kind": "soak", "cell": 0, "workload": cell.workload}
    samples = [_sample(model, second, telemetry.get(second, {})) for second in range(seconds)]
    return {
        "cells": table("cells", [_slice(where, cell, number, counts) for number in range(seconds // SLICE_S)]),
        "series": table("series", [_second(where, second, float(ios)) for second, ios in enumerate(counts)]),
        "latency_bins": table("latency_bins", _bins(where, cell, done_s, latency_ns)),
        "telemetry": table("telemetry", samples),
    }


def course_tables(iops: list[float] | np.ndarray, **telemetry: Any) -> dict[str, pd.DataFrame]:
    """Return the tables of a soak with these rates per second; `telemetry` has columns with a value per second."""
    rates = np.asarray(iops, dtype=float)
    cell = Cell("random", 100, 4096, 1, 4)
    where = {**key("made", "soak"), "step": 0, "kind": "soak", "cell": 0, "workload": cell.workload}
    result = {
        "cells": table("cells", [_slice(where, cell, number, rates) for number in range(len(rates) // SLICE_S)]),
        "series": table("series", [_second(where, second, rate) for second, rate in enumerate(rates)]),
    }
    if telemetry:
        times = {"time": [BEGAN + pd.Timedelta(seconds=second) for second in range(1, len(rates) + 1)]}
        columns = {name: list(values) for name, values in (times | telemetry).items()}
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        result["telemetry"] = table("telemetry", [{**key("made", "soak"), **row} for row in rows])
    return result


def rounds_table(values: dict[str, list[float]], until: str = "rounds", **more: Any) -> pd.DataFrame:
    """Return table `cells` of a loop; `values` has the rates of the rounds by workload."""
    rows, now = [], 0.0
    for number in range(max(len(rates) for rates in values.values())):
        for place, (name, rates) in enumerate(values.items()):
            rows.append({
                **key("made", "loop"), "step": 0, "kind": "loop", "round": number + 1, "cell": place, "workload": name,
                "pattern": "random", "block_size_bytes": 4096, "threads": 1, "queue_depth": 1,
                "range_start": 0.0, "range_share": 1.0,
                "until": until, "filled": True, "elapsed_s": now, "started": BEGAN + pd.Timedelta(seconds=now),
                "runtime_s": 1.0, "iops": rates[number], "read_ios": round(rates[number]), **more,
            })  # fmt: skip
            now += 1.0
    return table("cells", rows)


def _slice(where: dict[str, Any], cell: Cell, number: int, counts: np.ndarray) -> dict[str, Any]:
    ios = int(counts[number * SLICE_S : (number + 1) * SLICE_S].sum())
    return {
        **where, "round": number + 1, "pattern": "random", "read_share_pct": cell.read_share, "block_size_bytes": 4096,
        "threads": 1, "queue_depth": cell.queue_depth, "range_start": 0.0, "range_share": 1.0, "filled": True,
        "runtime_s": float(SLICE_S),
        "elapsed_s": float(number * SLICE_S), "started": BEGAN + pd.Timedelta(seconds=number * SLICE_S),
        "read_ios": ios, "iops": ios / SLICE_S, "directory": "cells/1",
    }  # fmt: skip


def _second(where: dict[str, Any], second: int, iops: float) -> dict[str, Any]:
    return {**where, "round": 1, "time_s": float(second + 1), "direction": "read", "iops": iops}


def _bins(where: dict[str, Any], cell: Cell, done_s: np.ndarray, latency_ns: np.ndarray) -> list[dict[str, Any]]:
    numbers = bin_indices(latency_ns.astype(np.int64))
    slices = (done_s // SLICE_S).astype(int) + 1
    direction = "read" if cell.read_share else "write"
    place = {**where, "pattern": "random", "read_share_pct": cell.read_share, "block_size_bytes": 4096}
    return [
        {
            **place,
            "round": int(number),
            "direction": direction,
            "latency_ns": bin_value(int(index)),
            "count": int(count),
        }
        for (number, index), count in pd.DataFrame({"round": slices, "bin": numbers}).value_counts().items()
    ]


def _sample(model: DriveModel, second: int, telemetry: dict[str, float]) -> dict[str, Any]:
    """Return a telemetry sample without throttling counters, which these tests do not need."""
    stolen = None if model.disturb is None else model.disturb.stolen_pct_at(1e6 * (second + 0.5))
    heat = {name: telemetry.get(name) for name in ("temperature_c", "temperature_limit_c")}
    return {**key("virtual", "soak"), "time": BEGAN + pd.Timedelta(seconds=second + 1), "steal_pct": stolen, **heat}
