"""Make the table `saturation`: cliff and final level of saturating soaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import numpy as np
import pandas as pd

from drivelab.analysis.detectors.drift import LEAST_DRIFT_PCT, blocks, trend
from drivelab.analysis.values.saturation_values import counted_slices, find_cliff, level, saturating
from drivelab.criteria.soundness import sound
from drivelab.tables.schemas import KEY, SCHEMAS

DRIFT_CHANCE = 0.05
"""Largest p-value of a monotone course that counts as a drift: five slices must be strictly in order (ours)."""
_OF_CLIFF = ("cliff_time_s", "cliff_bytes", "cliff_drive_fills", "iops_before", "iops_after")
"""Columns of the fields of a Cliff, in their order."""


def saturation_table(cells: pd.DataFrame, capacities: Mapping[str, int]) -> pd.DataFrame:
    """Make table `saturation` from table `cells` of any recordings.

    `capacities` are in bytes by drive.
    `saturating` chooses the soaks, `counted_slices` the slices of the final level. Successive soaks of one workload are
    one soak. Bytes written count from the end of conditioning. Unsound slices are excluded. Raises ValueError for a
    drive without a capacity.
    """
    measured = sound(cells)
    measured = measured.assign(saturates=saturating(measured))
    soaks = measured[(measured["kind"] == "soak") & measured["saturates"] & (measured["read_share_pct"] < 100)]
    rows = [
        _row(soak.sort_values(["step", "round"]), capacities)
        for _, soak in soaks.groupby(["recording", "cell_label"], sort=False)
    ]
    return pd.DataFrame(rows, columns=SCHEMAS["saturation"].names)


def drifts(counted: pd.DataFrame) -> bool:
    """Say whether the IOPS of the slices that count drift by LEAST_DRIFT_PCT.

    The PTS limits allow this: a window of five can meet them and still fall from slice to slice.
    """
    course = trend(blocks(counted["iops"].to_numpy(dtype=float))) if len(counted) > 1 else None
    return course is not None and course.chance < DRIFT_CHANCE and abs(course.drift_pct) >= LEAST_DRIFT_PCT


def _row(soak: pd.DataFrame, capacities: Mapping[str, int]) -> dict[str, Any]:
    drive = str(soak["drive"].iloc[0])
    if not capacities.get(drive, 0) > 0:
        raise ValueError(f"the capacity of drive '{drive}' is not known, but drive fills need it")
    capacity_bytes = capacities[drive]
    counted = counted_slices(soak).slices
    settled = level(counted, "iops")
    first, last = counted.iloc[0], soak.iloc[-1]
    written_before = int(first["bytes_written_total"]) - int(first["bytes_written"])
    cliff = find_cliff(soak, capacity_bytes)
    variation_pct = drift_pct = None
    iops = counted["iops"].to_numpy(dtype=float)
    if len(iops) > 1 and settled.average > 0:
        middle_s = (counted["elapsed_s"] + counted["runtime_s"] / 2).to_numpy(dtype=float)
        span_s = middle_s[-1] - middle_s[0]
        rise = float(np.polyfit(middle_s - middle_s[0], iops, 1)[0]) * span_s if span_s > 0 else 0.0
        variation_pct, drift_pct = 100 * float(iops.std(ddof=1)) / settled.average, 100 * rise / settled.average
    return {
        **{column: soak[column].iloc[0] for column in KEY},
        "step": int(soak["step"].iloc[0]),
        "cell_label": soak["cell_label"].iloc[0],
        "slices": len(soak),
        "cliff": cliff is not None,
        **dict(zip(_OF_CLIFF, astuple(cliff) if cliff else (None,) * len(_OF_CLIFF), strict=True)),
        "level_iops": settled.average,
        "level_low_iops": min(settled.blocks),
        "level_high_iops": max(settled.blocks),
        "level_variation_pct": variation_pct,
        "level_drift_pct": drift_pct,
        "level_steady": settled.steady and not drifts(counted),
        "level_from_s": float(first["elapsed_s"] - soak["elapsed_s"].iloc[0]),
        "level_from_drive_fills": written_before / capacity_bytes,
        "bytes_written": int(last["bytes_written_total"]),
        "drive_fills": int(last["bytes_written_total"]) / capacity_bytes,
    }
