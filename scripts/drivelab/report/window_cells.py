"""The cells in the steady-state windows of a test."""

from __future__ import annotations

import pandas as pd

from drivelab.report.inputs import Inputs, Key

_STEP = ["recording", "step"]
_ENDS = ["window_start", "window_end"]


def in_windows(inputs: Inputs, key: Key, *, tracked: bool = False) -> pd.DataFrame:
    """Return rows of `cells` whose round is in the window; with `tracked`, only tracked variables."""
    windows = inputs.frame_of("steady_state", key)
    cells = inputs.frame_of("cells", key)
    if windows.empty or cells.empty:
        return cells.iloc[:0]
    by = [*_STEP, "cell_label"] if tracked else _STEP
    ends = windows.rename(columns={"variable": "cell_label"})[[*by, *_ENDS]].drop_duplicates(by)
    merged = cells.merge(ends, on=by)
    return merged[merged["round"].between(merged["window_start"], merged["window_end"])]
