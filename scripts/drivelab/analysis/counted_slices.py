"""Which slices of a soak its result is made of."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from drivelab.analysis.saturation import saturated_slices
from drivelab.analysis.soundness import sound


@dataclass(frozen=True)
class CountedSlices:
    """Rows of table `cells`, in order, and what is said of them."""

    slices: pd.DataFrame
    statistic: str
    """Of an average over them."""
    words: str
    """What they are, for other statistics."""
    by_own_rule: bool = False
    """Whether the soak ended because it was steady in them."""


def counted_slices(soak: pd.DataFrame) -> CountedSlices:
    """Of one soak, or of successive soaks of one workload, whose rows are in order and have the column `saturates`.

    Those of the window where it ended in steady state by its own rule. The last fifth where it saturates a drive, see
    `saturating`. Else all: its length is what the protocol asks for.
    """
    inside = soak[soak["in_window"].astype(bool)]
    if len(inside):
        last = inside[inside["step"] == inside["step"].iloc[-1]]
        return CountedSlices(last, "steady-state window", "steady-state window", by_own_rule=True)
    if soak["saturates"].all():
        return CountedSlices(saturated_slices(soak), "post-saturation average", "saturated slices")
    return CountedSlices(soak, "average of the whole soak", "whole soak")


def lacking(cells: pd.DataFrame) -> pd.Series:
    """For each row of table `cells`, sound or not: whether it is of a soak whose steady-state window lacks a slice,
    which is unsound or not there."""
    windows = cells[(cells["kind"] == "soak") & cells["in_window"].astype(bool)]
    if windows.empty:
        return pd.Series(False, index=cells.index)
    of_step = ["recording", "step"]
    rounds = windows.groupby(of_step)["round"]
    length = rounds.max() - rounds.min() + 1
    lacks = sound(windows).groupby(of_step).size().reindex(length.index, fill_value=0) < length
    steps = pd.MultiIndex.from_frame(cells[of_step])
    return pd.Series(steps.isin(lacks.index[lacks]) & (cells["kind"] == "soak").to_numpy(), index=cells.index)


def saturating(measured: pd.DataFrame) -> pd.Series:
    """For each sound row of table `cells`: whether it is of what brings a fresh drive to saturation.

    That is a drive that was not filled, in a step that is in no phase, before which no other workload was measured.
    """
    fresh = ~measured["filled"].astype(bool) & measured["phase"].isna() & measured["point"].isna()
    if not fresh.any():
        return fresh
    firsts = measured.groupby(["recording", "workload"], sort=False)["step"].min()
    # the first two workloads of a recording tell of each one whether another came before it
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
