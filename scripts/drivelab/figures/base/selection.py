"""Select the rows of a figure, and refuse unsuitable tables with a clear message."""

from __future__ import annotations

import pandas as pd

from drivelab.analysis.values.rows import odd
from drivelab.criteria.host_limit import most_severe
from drivelab.criteria.repeats import FEWEST
from drivelab.criteria.taint import digest
from drivelab.figures.base.quantities import format_mix
from drivelab.tables.labels import named

Window = tuple[int, int]
"""First and last round of a steady-state window, numbered from 1."""


def require(frame: pd.DataFrame, table: str) -> None:
    """Raise ValueError unless table `table` has rows."""
    if frame.empty:
        raise ValueError(f"table '{table}' has no rows for this figure")


def require_one(frame: pd.DataFrame, column: str, table: str) -> object:
    """Return the only value of `column`; raises ValueError for no rows and for several, which would be drawn as one."""
    require(frame, table)
    values = frame[column].drop_duplicates().tolist()
    if len(values) != 1:
        shown = ", ".join(map(str, values[:4])) + (", …" if len(values) > 4 else "")
        raise ValueError(f"table '{table}' holds {len(values)} values of '{column}' ({shown}); this figure shows one")
    return values[0]


def rows(frame: pd.DataFrame, table: str, **wanted: object) -> pd.DataFrame:
    """Return the rows whose columns equal `wanted`; raises ValueError if there are none."""
    chosen = frame
    for column, value in wanted.items():
        chosen = chosen[chosen[column] == value]
    if chosen.empty:
        raise ValueError(f"table '{table}' has no rows with {', '.join(f'{k} = {v}' for k, v in wanted.items())}")
    return chosen


def one_measurement(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the loop's cells of one drive and run; raises ValueError for several or none."""
    loop = rows(cells, "cells", kind="loop")
    for column in ("drive", "protocol", "measurement", "run"):
        require_one(loop, column, "cells")
    return loop


def windows(steady_state: pd.DataFrame) -> dict[tuple[str, int], Window]:
    """Return the window of each (recording, step); raises ValueError if variables of a step disagree."""
    by_step: dict[tuple[str, int], Window] = {}
    columns = ["recording", "step", "window_start", "window_end"]
    for recording, step, start, end in steady_state[columns].drop_duplicates().itertuples(index=False):
        if by_step.setdefault((recording, step), (int(start), int(end))) != (int(start), int(end)):
            raise ValueError(f"table 'steady_state' holds two windows for step {step} of {recording}; expected one")
    return by_step


def window_rows(cells: pd.DataFrame, steady_state: pd.DataFrame) -> pd.DataFrame:
    """Return the cells inside the window of their step; raises ValueError for a step without a window."""
    by_step = windows(steady_state)
    keep: list[bool] = []
    for recording, step, number in cells[["recording", "step", "round"]].itertuples(index=False):
        if (recording, step) not in by_step:
            raise ValueError(f"table 'steady_state' has no window for step {step} of {recording}")
        start, end = by_step[recording, step]
        keep.append(start <= number <= end)
    chosen = cells[keep]
    if chosen.empty:
        raise ValueError("table 'cells' has no rounds inside the steady-state window")
    return chosen


def window_averages(cells: pd.DataFrame, steady_state: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return window averages of `metric`: rows by block size, columns by descending read share.

    Columns are named as `mix` does, and grouped by pattern. Of `max_latency_us` the maximum is taken, of
    `min_latency_us` the minimum. Raises ValueError for percentiles, which cannot be averaged. A
    cell that was not measured is NaN.
    """
    if metric[0] == "p" and metric.endswith("_latency_us"):
        raise ValueError(f"'{metric}' cannot be averaged over rounds; merge the latency bins instead")
    inside = window_rows(cells, steady_state)
    cell = ["block_size_bytes", "pattern", "read_share_pct"]
    if (inside.groupby(cell)[["recording", "step", "threads", "queue_depth"]].nunique() > 1).any(axis=None):
        raise ValueError("table 'cells' holds a cell in several steps or depths; choose one of them")
    grouped = inside.groupby(cell)[metric]
    extreme = {"max_latency_us": grouped.max, "min_latency_us": grouped.min}
    values = extreme.get(metric, grouped.mean)()
    table = values.unstack(["pattern", "read_share_pct"]).sort_index().sort_index(axis=1, ascending=[True, False])
    several = table.columns.get_level_values("pattern").nunique() > 1
    table.columns = pd.Index([mix(pattern, share, several=several) for pattern, share in table.columns])
    return table.astype(float)


def mix(pattern: object, read_share_pct: float, *, several: bool) -> str:
    """Return a mix as the PTS writes it, with its pattern if there are several: `65/35` or `RND 65/35`."""
    return f"{access(pattern)} {format_mix(read_share_pct)}" if several else format_mix(read_share_pct)


def access(pattern: object) -> str:
    """Return the access pattern in PTS notation."""
    return "RND" if pattern == "random" else "SEQ"


def loop_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the labelled loop cells of one drive and run; raises ValueError for several or none."""
    return named(one_measurement(cells))


def counted_rounds(loop: pd.DataFrame, steady_state: pd.DataFrame) -> pd.DataFrame:
    """Return the counted rounds: those of a steady-state window, else an odd number of warm rounds.

    The table `summary` uses the same rounds.
    """
    by_step = windows(steady_state)
    parts = []
    for (recording, step), rounds in loop[~loop["cold"].astype(bool)].groupby(["recording", "step"]):
        numbers = sorted(rounds["round"].unique())
        if (recording, step) in by_step:
            first, last = by_step[recording, step]
            numbers = [number for number in numbers if first <= number <= last]
        elif len(numbers) >= FEWEST:
            numbers = numbers[: odd(len(numbers))]
        parts.append(rounds[rounds["round"].isin(numbers)])
    rounds_that_count = pd.concat(parts) if parts else loop.iloc[:0]
    if rounds_that_count.empty:
        raise ValueError("table 'cells' has no rounds that count")
    return rounds_that_count


def cell_values(loop: pd.DataFrame, steady_state: pd.DataFrame, metrics: list[str], by: list[str]) -> pd.DataFrame:
    """Return columns `by` and `metrics` of each cell: window average, else median of counted rounds."""
    rounds = counted_rounds(loop, steady_state)
    groups = rounds.groupby(by, sort=False, as_index=False)[metrics]
    steady = not steady_state.empty
    return groups.mean() if steady else groups.median()


def value_name(steady_state: pd.DataFrame) -> str:
    """Return what `cell_values` are, for a note."""
    return "average of the window" if not steady_state.empty else "median of the counted rounds"


def tainted(frame: pd.DataFrame) -> str | None:
    """Return a note of what disturbed the rows of a table, or None."""
    if "taint_reason" not in frame.columns:
        return None
    reasons = digest(frame["taint_reason"].dropna())
    return f"tainted: {'; '.join(reasons)}" if reasons else None


def host_limited(frame: pd.DataFrame) -> str | None:
    """Return a note of why the host may be the limit of rows of a table, or None."""
    reason = most_severe(frame["host_limit"]) if "host_limit" in frame.columns else None
    return None if reason is None else f"host-limited: {reason}"


def not_steady(steady_state: pd.DataFrame) -> str | None:
    """Return an alarm for tracked variables that are not steady, or None; of several drives, for each drive."""
    messages = {
        str(drive): message
        for drive, windows in steady_state.groupby("drive", sort=False)
        if (message := _not_steady(windows)) is not None
    }
    if len(messages) == 1 and steady_state["drive"].nunique() == 1:
        return next(iter(messages.values()))
    return "; ".join(f"{drive}: {message}" for drive, message in messages.items()) or None


def _not_steady(steady_state: pd.DataFrame) -> str | None:
    failed = steady_state[~steady_state["reached"].astype(bool)]
    if failed.empty:
        return None
    total = int(failed["rounds"].max())
    broken = failed[
        (failed["measured_data_excursion"] > failed["allowed_data_excursion"])
        | (failed["measured_slope_excursion"] > failed["allowed_slope_excursion"])
    ]
    names = ", ".join(broken["variable"].drop_duplicates())
    return f"NOT STEADY after {total} round{'' if total == 1 else 's'}" + (f": {names}" if names else "")
