"""Rounds of loops that are repeats of each other."""

from __future__ import annotations

import pandas as pd

from drivelab.analysis.recovery import without_idle_time
from drivelab.tables.steps import RELATIVE_STANDARD_ERROR, ROUNDS

WINDOW = 5
"""Last rounds of a loop that ends in steady state: before, a drive is on its way to it (SNIA PTS)."""


def repeated_rounds(loops: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Warm rounds of loops in table `cells`, with `cell_label`, by that label and in their order.

    All warm rounds where they are asked for as repeats, the last five where the loop looks for steady state. Not those
    of a phase: what is between them changes the drive on purpose.
    """
    loops = loops[loops["phase"].isna() & ~without_idle_time(loops)].sort_values("round")
    found = {}
    for label, group in loops.groupby("cell_label", sort=False):
        repeats = group["until"].iloc[0] in (ROUNDS, RELATIVE_STANDARD_ERROR)
        found[str(label)] = group if repeats else group.tail(WINDOW)
    return found
