"""Choose the rounds of loops that are repeats of each other."""

from __future__ import annotations

import pandas as pd

from drivelab.analysis.recovery import without_idle_time
from drivelab.tables.steps import RELATIVE_STANDARD_ERROR, ROUNDS

WINDOW = 5
"""Rounds that count at the end of a loop until steady state: before them, the drive still settles (SNIA PTS)."""


def repeated_rounds(loops: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return {cell_label: warm rounds that are repeats, in order} of loops.

    `loops` are rows of table `cells` with `cell_label`.
    All warm rounds count where the protocol repeats them; the last five count where the loop runs until steady state.
    Rounds of a phase are left out: the steps between them change the drive on purpose.
    """
    loops = loops[loops["phase"].isna() & ~without_idle_time(loops)].sort_values("round")
    rounds = {}
    for label, group in loops.groupby("cell_label", sort=False):
        repeats = group["until"].iloc[0] in (ROUNDS, RELATIVE_STANDARD_ERROR)
        rounds[str(label)] = group if repeats else group.tail(WINDOW)
    return rounds
