"""Steady-state windows of recordings, as the table `steady_state`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from drivelab.analysis.labels import UNITS, demand, workload
from drivelab.analysis.steady_state import find_window
from drivelab.tables.schemas import KEY, SCHEMAS

_DETERMINATION = (
    "average",
    "allowed_data_excursion",
    "measured_data_excursion",
    "allowed_slope_excursion",
    "measured_slope_excursion",
    "slope",
    "intercept",
    "residual_drift_pct",
)


def windows_table(cells: pd.DataFrame, criteria: Mapping[int, Mapping[str, Any]]) -> pd.DataFrame:
    """Table `steady_state` from table `cells`: a row for each tracked variable of each loop.

    `criteria` gives, by number of the step, the `until` of a loop in a plan: `window`, `data_excursion`,
    `slope_excursion` (fractions) and `track`, a list of `pattern`, `read_share`, `block_size_bytes`,
    `metric`; or of `streams: all` and `metric`, which is every cell of the loop, or those of `threads` and
    `queue_depth`. A loop that was interrupted has its window in the rounds that lie wholly after the last
    interruption. Raises ValueError when a tracked variable has not just one cell in each round.
    """
    rows: list[dict[str, Any]] = []
    for step, criterion in criteria.items():
        loop = cells[(cells["kind"] == "loop") & (cells["step"] == step)]
        for _, one in loop.groupby("recording", sort=False):
            rows += _rows(one, step, criterion)
    return pd.DataFrame(rows, columns=SCHEMAS["steady_state"].names)


def _rows(loop: pd.DataFrame, step: int, criterion: Mapping[str, Any]) -> list[dict[str, Any]]:
    key = {column: loop[column].iloc[0] for column in KEY}
    found = [(name, one["metric"], cells) for one in criterion["track"] for name, cells in _tracked(loop, one).items()]
    variables = {f"{name}, {metric}": (name, metric) for name, metric, _ in found}
    values = {f"{name}, {metric}": _values(cells, loop, name, metric) for name, metric, cells in found}
    window = find_window(values, criterion, first_whole_round(loop))
    return [
        {
            **key,
            "step": step,
            "variable": variables[name][0],
            "metric": variables[name][1],
            "unit": UNITS[variables[name][1]],
            "reached": window.reached,
            "rounds": len(values[name]),
            "window_start": window.first_round,
            "window_end": window.last_round,
            "values": values[name][window.first_round - 1 : window.last_round],
            **{column: getattr(state, column) for column in _DETERMINATION},
        }
        for name, state in window.states.items()
    ]


def _tracked(loop: pd.DataFrame, variable: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Rows of the cells that a tracked variable is of, by what the cell is called in the table `summary`."""
    if "streams" not in variable:
        largest = variable.get("block_size_max_bytes")
        name = workload(variable["pattern"], variable["block_size_bytes"], variable["read_share"], largest)
        chosen = (
            (loop["pattern"] == variable["pattern"])
            & (loop["read_share_pct"] == variable["read_share"])
            & (loop["block_size_bytes"] == variable["block_size_bytes"])
        )
        if "block_size_max_bytes" in loop:
            sizes = loop["block_size_max_bytes"]
            chosen &= sizes.isna() if largest is None else sizes == largest
        return {name: loop[chosen]}
    several = len(loop[["threads", "queue_depth"]].drop_duplicates()) > 1
    found = {}
    for place, cells in loop.groupby(["pattern", "block_size_bytes", "read_share_pct", "threads", "queue_depth"]):
        pattern, size, share, threads, queue_depth = place
        if (variable.get("threads", threads), variable.get("queue_depth", queue_depth)) == (threads, queue_depth):
            name = workload(pattern, size, share)
            found[f"{name} {demand(threads, queue_depth)}" if several else name] = cells
    return found


def _values(cells: pd.DataFrame, loop: pd.DataFrame, name: str, metric: str) -> list[float]:
    found = cells.sort_values("round")
    if list(found["round"]) != list(range(1, loop["round"].max() + 1)):
        raise ValueError(f"{loop['recording'].iloc[0]}: {name} has not just one cell in each round")
    return [float(value) for value in found[metric]]


def first_whole_round(loop: pd.DataFrame) -> int:
    """Number of the first round wholly after the last interruption: 1 if there was none.

    A round whose first cell came just after the interruption is whole, one that was interrupted midway is not.
    """
    resumed = loop[loop["after_gap"]]
    if resumed.empty:
        return 1
    last = int(resumed["round"].max())
    first_cell = loop[loop["round"] == last].sort_values("cell").iloc[0]
    return last if first_cell["after_gap"] else last + 1
