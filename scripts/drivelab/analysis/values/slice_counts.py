"""Choose the slices of a soak that its result is computed from."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from drivelab.analysis.values.saturation_values import saturated_slices
from drivelab.criteria.soundness import sound


@dataclass(frozen=True)
class CountedSlices:
    """The slices that count, in order, and words to describe them."""

    slices: pd.DataFrame
    statistic: str
    """Name of the average over these slices."""
    words: str
    """Name of the slices, for other statistics."""
    by_own_rule: bool = False
    """Whether the soak's own stop rule found these slices steady."""


def counted_slices(soak: pd.DataFrame) -> CountedSlices:
    """Return the slices that count of successive soaks of one workload.

    `soak` has rows in order, with the column `saturates`. If its own stop rule found steady state, the slices of that
    window count. If it saturates the drive (see `saturating`), the last fifth counts. Otherwise all slices count,
    because the protocol sets the length of the soak.
    """
    inside = soak[soak["in_window"].astype(bool)]
    if len(inside):
        last = inside[inside["step"] == inside["step"].iloc[-1]]
        return CountedSlices(last, "steady-state window", "steady-state window", by_own_rule=True)
    if soak["saturates"].all():
        return CountedSlices(saturated_slices(soak), "post-saturation average", "saturated slices")
    return CountedSlices(soak, "average of the whole soak", "whole soak")


def lacking(cells: pd.DataFrame) -> pd.Series:
    """Flag the rows of soaks whose steady-state window lacks a slice.

    `cells` is table `cells` with its unsound rows. A window lacks a slice that is unsound or missing.
    """
    windows = cells[(cells["kind"] == "soak") & cells["in_window"].astype(bool)]
    if windows.empty:
        return pd.Series(False, index=cells.index)
    by_step = ["recording", "step"]
    rounds = windows.groupby(by_step)["round"]
    length = rounds.max() - rounds.min() + 1
    lacks = sound(windows).groupby(by_step).size().reindex(length.index, fill_value=0) < length
    steps = pd.MultiIndex.from_frame(cells[by_step])
    return pd.Series(steps.isin(lacks.index[lacks]) & (cells["kind"] == "soak").to_numpy(), index=cells.index)


def saturating(measured: pd.DataFrame) -> pd.Series:
    """Flag the sound rows of table `cells` whose workload saturates a fresh drive.

    It does if the drive was not filled, the step is not part of a phase, and no other workload was measured before.
    """
    fresh = ~measured["filled"].astype(bool) & measured["phase"].isna() & measured["point"].isna()
    if not fresh.any():
        return fresh
    firsts = measured.groupby(["recording", "workload"], sort=False)["step"].min()
    # the first two workloads of a recording suffice: another workload came before each later one
    ordered = firsts.sort_values(kind="stable").groupby(level="recording", sort=False)
    first, second = (_by_recording(ordered.nth(number)) for number in (0, 1))
    recordings = measured["recording"]
    is_first = measured["workload"].astype(object) == recordings.map(first["workload"]).astype(object)
    others = recordings.map(second["step"]).astype(float).where(is_first, recordings.map(first["step"]))
    begins = measured.groupby(["recording", "cell_label"], sort=False)["step"].transform("min")
    later = others.notna() & (others < begins)
    return fresh & ~later


def _by_recording(firsts: pd.Series) -> pd.DataFrame:
    return firsts.reset_index("workload")
