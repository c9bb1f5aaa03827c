"""Measure cross stimulus recovery (PTS XSR) and host idle recovery (PTS HIR)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from drivelab.analysis.values.saturation_values import post_saturation, saturated_slices

RATE = "bandwidth_mib_s"
AS_USUAL = 0.9
"""Fraction of the settled rate at which a drive has recovered: the PTS allows a steady rate to be a tenth off its
average (ours)."""
_SCATTERS = 3.0
"""Standard deviations of a slice that it may lie below the settled rate, if this is more (ours)."""


@dataclass(frozen=True)
class StimulusRecovery:
    """The first slice after a stimulus with the rate back at a level."""

    slice_number: int
    """Number of the slice, from 1."""
    time_s: float
    """Time from the start of the first slice after the stimulus to the end of this one; a slice that was left out
    counts with the median duration of the others."""
    at_most: bool
    """Whether earlier slices were left out: the rate may have recovered in one of them."""


@dataclass(frozen=True)
class CrossStimulus:
    """The result of the three-part test. A recovery is None if the rate did not return."""

    workload: str
    stimulus: str
    level: float
    """Time average of the rate before the stimulus."""
    usual: float
    """Level above which the rate counts as settled, see `usual_level`."""
    recovery: StimulusRecovery | None
    """Recovery to `level`, by the PTS. This mean includes the fresh start. For a steady rate, chance decides which
    slice is the first above its mean."""
    settled: StimulusRecovery | None
    """Recovery to `usual`."""


def mean_level(before: pd.DataFrame, metric: str = RATE) -> float:
    """Return the time average of the slices before a stimulus. Raises ValueError without a slice."""
    if before.empty:
        raise ValueError("there is no slice before the stimulus")
    return float(np.average(before[metric], weights=before["runtime_s"]))


def usual_level(before: pd.DataFrame, metric: str = RATE) -> float:
    """Return the level above which a slice after a stimulus counts as settled.

    It is the average of the last fifth of the slices before the stimulus, less a tenth of it or less three standard
    deviations of a slice, whichever is lower.
    """
    values = saturated_slices(before)[metric].to_numpy(dtype=float)
    usual, scatter = post_saturation(before, metric).average, float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return min(AS_USUAL * usual, usual - _SCATTERS * scatter)


def stimulus_recovery(after: pd.DataFrame, level: float, metric: str = RATE) -> StimulusRecovery | None:
    """Return the first slice after a stimulus with at least `level`, or None.

    `after` are sound rows of table `cells` in order; their `round` also counts the slices that were left out.
    """
    reached = after[metric].to_numpy(dtype=float) >= level
    if not reached.any():
        return None
    first = int(np.argmax(reached))
    number = int(after["round"].iloc[first])
    left_out = number - (first + 1)
    durations_s = after["runtime_s"]
    time_s = float(durations_s.iloc[: first + 1].sum() + left_out * durations_s.median())
    return StimulusRecovery(number, time_s, at_most=left_out > 0)


def cross_stimulus(cells: pd.DataFrame, metric: str = RATE) -> list[CrossStimulus]:
    """Return the cross stimulus tests of a recording.

    A test is three successive soaks: the first and the third have the same load, the second has another one.
    `cells` are the sound rows of one recording in table `cells`.
    """
    soaks = cells[cells["kind"] == "soak"].sort_values(["step", "round"])
    parts = {int(step): part for step, part in soaks.groupby("step")}
    tests = []
    for step, before in parts.items():
        stimulus, after = parts.get(step + 1), parts.get(step + 2)
        if stimulus is None or after is None:
            continue
        first, second, third = (_load(part) for part in (before, stimulus, after))
        if first == third != second:
            levels = mean_level(before, metric), usual_level(before, metric)
            back = [stimulus_recovery(after, level, metric) for level in levels]
            tests.append(CrossStimulus(first[0], second[0], *levels, *back))
    return tests


def idle_recovery(cells: pd.DataFrame) -> pd.DataFrame:
    """Return how idle time changes bursts of I/O: a row for each wait.

    `cells` are the rows of one recording in table `cells`.
    Bursts are the cells of a loop that pauses after each. Their baseline is the settled rate of the last earlier step
    with the same workload and without pauses. Bursts without idle time before them, such as the first of a loop, are
    left out. Columns: phase_value, wait_s, bursts, mean_iops (over the counted bursts), first_iops, last_iops,
    baseline_iops, ratio (mean to baseline). The last two are NaN without a baseline.
    """
    measured = cells[cells["kind"].isin(["loop", "soak"]) & ~cells["cold"].astype(bool)]
    waits = []
    baselines: dict[tuple[Any, ...], float] = {}
    ordered = measured.sort_values(["step", "cell", "round"]) if measured["pause_s"].notna().any() else measured.head(0)
    for _, part in ordered.groupby(["step", "cell"]):
        load = _load(part)
        if part["kind"].iloc[0] == "soak" or part["pause_s"].isna().all():  # these are not bursts
            baselines[load] = post_saturation(part, "iops").average
            continue
        rested = part[part["idle_ms"].notna()]
        if len(rested):
            first, iops = rested.iloc[0], rested["iops"].to_numpy(dtype=float)
            mean, baseline = float(iops.mean()), baselines.get(load, float("nan"))
            waits.append((first["phase_value"], float(first["pause_s"]), len(iops), mean, float(iops[0]),
                          float(iops[-1]), baseline, mean / baseline))  # fmt: skip
    columns = ["phase_value", "wait_s", "bursts", "mean_iops", "first_iops", "last_iops", "baseline_iops", "ratio"]
    return pd.DataFrame(waits, columns=columns)


def without_idle_time(cells: pd.DataFrame) -> pd.Series:
    """Flag the rows of table `cells` that are bursts without a pause before them.

    The first burst directly follows the step before, so it does not measure idle time.
    """
    return cells["phase"].notna() & cells["pause_s"].notna() & cells["idle_ms"].isna()


def _load(part: pd.DataFrame) -> tuple[Any, ...]:
    """Return workload, threads and queue depth."""
    return tuple(part[column].iloc[0] for column in ("workload", "threads", "queue_depth"))
