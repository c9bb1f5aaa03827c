"""The cells that the steady-state windows of a test are made of."""

from __future__ import annotations

import pandas as pd

from drivelab.report.inputs import Inputs, Key

_STEP = ["recording", "step"]
_ENDS = ["window_start", "window_end"]


def in_windows(inputs: Inputs, key: Key, *, tracked: bool = False) -> pd.DataFrame:
    """Rows of `cells`, of the rounds in the window; of the tracked variables alone if asked for."""
    windows = inputs.frame_of("steady_state", key)
    cells = inputs.frame_of("cells", key)
    if windows.empty or cells.empty:
        return cells.iloc[:0]
    by = [*_STEP, "cell_label"] if tracked else _STEP
    ends = windows.rename(columns={"variable": "cell_label"})[[*by, *_ENDS]].drop_duplicates(by)
    found = cells.merge(ends, on=by)
    return found[found["round"].between(found["window_start"], found["window_end"])]
