"""Shared parts of the replay figures: shown runs, badges and an axis of nines."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import style
from drivelab.figures.kinds.trace.trace_common import BADGES

RUN = ["recording", "step", "phase", "phase_pass", "trace", "repeat"]
"""Columns that identify a replay."""
PLANNED = "#9a9a9a"
MOST_LINES = 6
"""With more traces, single traces have no lines."""
_BAD = "#ff8c7a"


def badges(figure: Figure, replays: pd.DataFrame) -> None:
    """Add badges for partial replays and incomplete traces; call this before labelling the figure."""
    texts = {"PARTIAL replay": _BAD} if replays["partial"].astype(bool).any() else {}
    marks = dict.fromkeys(mark for text in replays["trace_marks"].dropna() for mark in text.split(", "))
    texts |= {f"{mark.upper()} trace": BADGES[mark] for mark in marks if mark in BADGES}
    for text, colour in texts.items():
        style.badge(figure, text, colour)


def counted(frame: pd.DataFrame, table: str) -> pd.DataFrame:
    """Return the rows of counted runs; raises ValueError if there are none."""
    rows = frame[frame["counted"].astype(bool)]
    if rows.empty:
        raise ValueError(f"table '{table}' has no counted run; a figure of a replay needs one")
    return rows


def traces(frame: pd.DataFrame) -> list[str]:
    return list(frame["trace"].drop_duplicates())


def median_runs(replays: pd.DataFrame) -> pd.DataFrame:
    """Return for each trace the counted run with the median access time, or the first if it is unknown.

    Of an even number of runs, the lower of the two middle ones is taken.
    """
    medians = []
    for _, runs in counted(replays, "replays").groupby("trace", sort=False):
        known = runs[runs["access_time_us"].notna()].sort_values("access_time_us", kind="stable")
        medians.append((known if len(known) else runs.head(1)).iloc[[(max(len(known), 1) - 1) // 2]])
    return pd.concat(medians)


def of_runs(frame: pd.DataFrame, runs: pd.DataFrame, table: str) -> pd.DataFrame:
    """Return the rows of a table that belong to the replays in `runs`; raises ValueError for missing columns."""
    if missing := [column for column in RUN if column not in frame.columns]:
        raise ValueError(f"table '{table}' lacks the column(s) {', '.join(missing)} that this figure needs")
    wanted = set(map(_key, runs[RUN].itertuples(index=False, name=None)))
    mine = [_key(row) in wanted for row in frame[RUN].itertuples(index=False, name=None)]
    return frame[np.array(mine, np.bool_)]


def _key(values: tuple[object, ...]) -> tuple[object, ...]:
    """Return a key in which nulls are equal."""
    return tuple(None if value is None or value != value else value for value in values)


def run_name(run: pd.Series) -> str:
    """Return the name of a replay, such as `sqlite, run 3` or `sqlite, degradation, pass 2`."""
    if pd.isna(run["phase"]):
        return f"{run['trace']}, run {run['repeat']}"
    return f"{run['trace']}, {run['phase']}, pass {int(run['phase_pass'])}"


def exceedance(values: pd.Series, counts: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return ascending distinct values, and the share of all values at least as large (1 at first)."""
    merged = counts.astype(float).groupby(values.to_numpy()).sum().sort_index()
    merged = merged[merged > 0]
    share = merged.to_numpy()[::-1].cumsum()[::-1] / merged.sum()
    return merged.index.to_numpy(float), share
