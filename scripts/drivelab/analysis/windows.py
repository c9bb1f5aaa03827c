"""Steady-state windows of recordings, as the table `steady_state`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from drivelab.analysis.labels import UNITS, named
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


_COLUMNS = {
    "pattern": "pattern",
    "read_share": "read_share_pct",
    "block_size_bytes": "block_size_bytes",
    "threads": "threads",
    "queue_depth": "queue_depth",
    "alignment_offset_bytes": "alignment_offset_bytes",
}
"""Of table `cells`, by key of a tracked variable."""


def windows_table(cells: pd.DataFrame, criteria: Mapping[int, Mapping[str, Any]]) -> pd.DataFrame:
    """Table `steady_state` from table `cells`: a row for each tracked variable of each loop.

    `criteria` gives, by number of the step, the `until` of a loop in a plan; those without `track` end by other rules
    and have no window. Else `window`, `data_excursion`, `slope_excursion` (fractions) and `track`, a list of any of
    `pattern`, `read_share`, `block_size_bytes`, `block_size_max_bytes`, `threads`, `queue_depth`, with `metric`; what
    is not named matches any cell, yet it must be just one. With `streams: all` it is every cell that matches.
    Cold rounds, which come first, count nowhere; the numbers of the others are as in `cells`. A loop that was
    interrupted has its window in the rounds that lie wholly after the last interruption. Raises ValueError when a
    tracked variable has not just one cell in each round.
    """
    rows: list[dict[str, Any]] = []
    counted = named(cells)
    counted = counted[(counted["kind"] == "loop") & ~counted["cold"].astype(bool)]
    for step, criterion in criteria.items():
        if "track" not in criterion:
            continue
        for _, one in counted[counted["step"] == step].groupby("recording", sort=False):
            rows += _rows(one, step, criterion)
    return pd.DataFrame(rows, columns=SCHEMAS["steady_state"].names)


def _rows(loop: pd.DataFrame, step: int, criterion: Mapping[str, Any]) -> list[dict[str, Any]]:
    key = {column: loop[column].iloc[0] for column in KEY}
    found = [(name, one["metric"], cells) for one in criterion["track"] for name, cells in _tracked(loop, one).items()]
    variables = {f"{name}, {metric}": (name, metric) for name, metric, _ in found}
    values = {f"{name}, {metric}": _values(cells, loop, name, metric) for name, metric, cells in found}
    before = int(loop["round"].min()) - 1  # cold rounds
    window = find_window(values, criterion, max(first_whole_round(loop) - before, 1))
    return [
        {
            **key,
            "step": step,
            "variable": variables[name][0],
            "metric": variables[name][1],
            "unit": UNITS[variables[name][1]],
            "reached": window.reached,
            "rounds": before + len(values[name]),
            "window_start": before + window.first_round,
            "window_end": before + window.last_round,
            "values": values[name][window.first_round - 1 : window.last_round],
            **{column: getattr(state, column) for column in _DETERMINATION},
            "intercept": state.intercept - before * state.slope,
        }
        for name, state in window.states.items()
    ]


def _tracked(loop: pd.DataFrame, variable: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Rows of the cells that a tracked variable is of, by what the cell is called in the table `summary`."""
    chosen = pd.Series(True, index=loop.index)
    for key, column in _COLUMNS.items():
        if key in variable:
            chosen &= loop[column] == variable[key]
    if "block_size_bytes" in variable:
        largest = variable.get("block_size_max_bytes")
        sizes = loop["block_size_max_bytes"]
        chosen &= sizes.isna() if largest is None else sizes == largest
    if "streams" in variable:
        return {str(name): cells for name, cells in loop[chosen].groupby("cell_label", sort=False)}
    names = " and ".join(loop.loc[chosen, "cell_label"].unique())
    return {names or _words(variable): loop[chosen]}


def _words(variable: Mapping[str, Any]) -> str:
    """A tracked variable that no cell is of."""
    return "the cell with " + ", ".join(f"{key} {value}" for key, value in variable.items() if key != "metric")


def _values(cells: pd.DataFrame, loop: pd.DataFrame, name: str, metric: str) -> list[float]:
    found = cells.sort_values("round")
    if list(found["round"]) != list(range(loop["round"].min(), loop["round"].max() + 1)):
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
