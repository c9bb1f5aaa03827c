"""How a drive recovers: from a stimulus of another workload (PTS XSR), and in idle time (PTS HIR)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from drivelab.analysis.saturation import post_saturation, saturated_slices

RATE = "bandwidth_mib_s"
AS_USUAL = 0.9
"""Of the settled rate before a stimulus: from there on a drive is back at it, for the PTS lets a steady rate be a tenth
off its average (ours)."""
_SCATTERS = 3.0
"""Standard deviations of a slice by which it may be below the settled rate, if that is more (ours)."""


@dataclass(frozen=True)
class StimulusRecovery:
    """The first slice after a stimulus in which the rate is back at a level."""

    level: float
    """In the unit of the rate."""
    slice_number: int
    """From 1."""
    time_s: float
    """From the start of the first slice after the stimulus to the end of this one; a slice that is left out lasts as
    long as the others do in the median."""
    rate: float
    """In this slice."""
    at_most: bool
    """Slices before it are left out: the rate may have been back in one of them."""


@dataclass(frozen=True)
class CrossStimulus:
    """The three parts of the test; a recovery is None where the rate did not come back."""

    workload: str
    stimulus: str
    level: float
    """Mean of the rate before the stimulus, over time."""
    usual: float
    """From where on a rate is as it had settled before the stimulus, see `usual_level`."""
    recovery: StimulusRecovery | None
    """To that mean, by the PTS. It counts the fresh start, and where a rate is steady chance decides which slice is
    the first above its mean."""
    settled: StimulusRecovery | None
    """To `usual`."""


def mean_level(before: pd.DataFrame, metric: str = RATE) -> float:
    """The mean over time of slices before a stimulus. Raises ValueError without a slice."""
    if before.empty:
        raise ValueError("there is no slice before the stimulus to recover to")
    return float(np.average(before[metric], weights=before["runtime_s"]))


def usual_level(before: pd.DataFrame, metric: str = RATE) -> float:
    """From where on a slice after a stimulus is as those that the drive had settled at before, the last fifth: the
    average of these, less a tenth of it or three standard deviations of a slice, whichever is more."""
    values = saturated_slices(before)[metric].to_numpy(dtype=float)
    usual, scatter = post_saturation(before, metric).average, float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return min(AS_USUAL * usual, usual - _SCATTERS * scatter)


def stimulus_recovery(after: pd.DataFrame, level: float, metric: str = RATE) -> StimulusRecovery | None:
    """The first of the slices after a stimulus with a rate of `level` or more, or None where it does not come back.

    `after` are sound rows of table `cells` in order, whose `round` counts the slices that are left out too.
    """
    reached = after[metric].to_numpy(dtype=float) >= level
    if not reached.any():
        return None
    first = int(np.argmax(reached))
    number = int(after["round"].iloc[first])
    left_out = number - (first + 1)
    durations_s = after["runtime_s"]
    return StimulusRecovery(
        level=level,
        slice_number=number,
        time_s=float(durations_s.iloc[: first + 1].sum() + left_out * durations_s.median()),
        rate=float(after[metric].iloc[first]),
        at_most=left_out > 0,
    )


def cross_stimulus(cells: pd.DataFrame, metric: str = RATE) -> list[CrossStimulus]:
    """Wherever three successive steps of a recording are soaks, the first and the third alike, the second not.

    `cells` are the sound rows of one recording in table `cells`.
    """
    soaks = cells[cells["kind"] == "soak"].sort_values(["step", "round"])
    parts = {int(step): part for step, part in soaks.groupby("step")}
    found = []
    for step, before in parts.items():
        stimulus, after = parts.get(step + 1), parts.get(step + 2)
        if stimulus is None or after is None:
            continue
        first, second, third = (_load(part) for part in (before, stimulus, after))
        if first == third != second:
            levels = mean_level(before, metric), usual_level(before, metric)
            back = [stimulus_recovery(after, level, metric) for level in levels]
            found.append(CrossStimulus(first[0], second[0], *levels, *back))
    return found


def idle_recovery(cells: pd.DataFrame) -> pd.DataFrame:
    """What idle time before bursts of I/O is worth: a row for each wait, from the rows of one recording in `cells`.

    Bursts are the cells of a loop that pauses after each; what they are compared with is the last step before with the
    same workload and without pauses, after what it settled at. Bursts before which the drive was not idle, as the first
    of a loop, are left out. Columns phase_value, wait_s, bursts, mean_iops (over the counted bursts), first_iops,
    last_iops, baseline_iops and ratio, mean to baseline; the last two are NaN where nothing came before.
    """
    measured = cells[cells["kind"].isin(["loop", "soak"]) & ~cells["cold"].astype(bool)]
    columns = ["phase_value", "wait_s", "bursts", "mean_iops", "first_iops", "last_iops", "baseline_iops", "ratio"]
    return pd.DataFrame(list(_waits(measured)), columns=columns)


def without_idle_time(cells: pd.DataFrame) -> pd.Series:
    """For each row of table `cells`: whether it is a burst of a phase with pauses, but came without one before it.

    The first burst directly follows the step before: it says nothing of idle time.
    """
    return cells["phase"].notna() & cells["pause_s"].notna() & cells["idle_ms"].isna()


def _waits(cells: pd.DataFrame) -> Iterator[dict[str, Any]]:
    if cells["pause_s"].isna().all():
        return
    baselines: dict[tuple[Any, ...], float] = {}
    for _, part in cells.sort_values(["step", "cell", "round"]).groupby(["step", "cell"]):
        load = _load(part)
        if part["kind"].iloc[0] == "soak" or part["pause_s"].isna().all():  # no bursts
            baselines[load] = post_saturation(part, "iops").average
            continue
        part = part[part["idle_ms"].notna()]
        if part.empty:
            continue
        iops, baseline = part["iops"].to_numpy(dtype=float), baselines.get(load, float("nan"))
        yield {
            "phase_value": part["phase_value"].iloc[0],
            "wait_s": float(part["pause_s"].iloc[0]),
            "bursts": len(iops),
            "mean_iops": float(iops.mean()),
            "first_iops": float(iops[0]),
            "last_iops": float(iops[-1]),
            "baseline_iops": baseline,
            "ratio": float(iops.mean()) / baseline,
        }


def _load(part: pd.DataFrame) -> tuple[Any, ...]:
    """Workload, threads and depth."""
    return tuple(part[column].iloc[0] for column in ("workload", "threads", "queue_depth"))
