"""Make the table `steady_state`: the steady-state windows of recordings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from drivelab.criteria.settling import to_asymptote
from drivelab.criteria.soundness import sound
from drivelab.criteria.steady_state import Window, find_window
from drivelab.tables.labels import KINDS, UNITS
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
"""Column of table `cells` for each key of a tracked variable."""


def windows_table(cells: pd.DataFrame, criteria: Mapping[int, Mapping[str, Any]]) -> pd.DataFrame:
    """Make table `steady_state`: a row for each tracked variable of each loop.

    `criteria` has for each step number the `until` of the loop in its plan. A criterion without `track` is another stop
    rule; its loop has no window. Other criteria have `window`, `data_excursion`, `slope_excursion` (fractions) and
    `track`: a list of variables with a `metric` and any of `pattern`, `read_share`, `block_size_bytes`,
    `block_size_max_bytes`, `threads`, `queue_depth`. A key left out matches any cell, but exactly one cell must match.
    With `streams: all`, every matching cell is tracked.

    * Cold rounds, which come first, are excluded; the other rounds keep their numbers in `cells`.
    * After an interruption, the window lies wholly in the rounds after the last one.
    * A window has no hole. A round that lacks a tracked variable, because its cell is unsound or missing, splits the
      loop into stretches. If no stretch meets the criterion, the table shows the last stretch that is at least as long
      as a window, or else the last one.
    * A loop without any whole round has no row.

    Raises ValueError if a tracked variable has no cell at all, or several in a round.
    """
    rows: list[dict[str, Any]] = []
    for loop, step, criterion in _loops(cells, criteria):
        rows += _rows(loop, step, criterion)
    return pd.DataFrame(rows, columns=SCHEMAS["steady_state"].names)


def without_whole_round(cells: pd.DataFrame, criteria: Mapping[int, Mapping[str, Any]]) -> list[tuple[str, int]]:
    """Return (recording, step) of loops without a round of all tracked variables.

    Arguments and errors: see `windows_table`.
    """
    return [
        (str(loop["recording"].iloc[0]), step)
        for loop, step, criterion in _loops(cells, criteria)
        if not _whole_rounds([rounds for *_, rounds in _variables(loop, criterion)])
    ]


def _loops(
    cells: pd.DataFrame, criteria: Mapping[int, Mapping[str, Any]]
) -> Iterator[tuple[pd.DataFrame, int, Mapping[str, Any]]]:
    """Yield rows, step and criterion of each loop until steady state. Unsound rows are included."""
    counted = cells[(cells["kind"] == "loop") & ~cells["cold"].astype(bool)]
    for step, criterion in criteria.items():
        if "track" in criterion:
            for _, loop in counted[counted["step"] == step].groupby("recording", sort=False):
                yield loop, step, criterion


def _rows(loop: pd.DataFrame, step: int, criterion: Mapping[str, Any]) -> list[dict[str, Any]]:
    key = {column: loop[column].iloc[0] for column in KEY}
    variables = list(_variables(loop, criterion))
    stretches = _stretches(_whole_rounds([rounds for *_, rounds in variables]))
    if not stretches:
        return []
    values = {f"{name}, {metric}": rounds for name, metric, rounds in variables}
    before, window = _window(values, stretches, criterion, first_whole_round(loop))
    return [
        {
            **key,
            "step": step,
            "variable": name,
            "metric": metric,
            "unit": UNITS[metric],
            "reached": window.reached,
            "rounds": int(loop["round"].max()),
            "window_start": before + window.first_round,
            "window_end": before + window.last_round,
            "values": [rounds[before + number] for number in range(window.first_round, window.last_round + 1)],
            **{column: getattr(state, column) for column in _DETERMINATION},
            "intercept": state.intercept - before * state.slope,
            "asymptote_pct": _asymptote_pct(rounds, before + window.last_round, window, KINDS[metric] == "time"),
        }
        for name, metric, rounds in variables
        for state in [window.states[f"{name}, {metric}"]]
    ]


def _asymptote_pct(rounds: Mapping[int, float], last_round: int, window: Window, of_times: bool) -> float:
    """Return the asymptote of the rounds up to the last of the window, relative to the average of the window."""
    values = np.array([[rounds[number] for number in sorted(rounds) if number <= last_round]])
    off = to_asymptote(values, window.last_round - window.first_round + 1, of_times=of_times)
    return 100 * math.expm1(float(off[0]))


def _window(
    values: Mapping[str, Mapping[int, float]], stretches: list[range], criterion: Mapping[str, Any], not_before: int
) -> tuple[int, Window]:
    """Return the number of rounds before a stretch, and the window in it.

    The window counts rounds from the first of the stretch.
    """
    windows: list[tuple[int, Window]] = []
    for stretch in stretches:
        before = stretch.start - 1  # cold rounds, or those before a hole
        of_stretch = {name: [rounds[number] for number in stretch] for name, rounds in values.items()}
        windows.append((before, find_window(of_stretch, criterion, max(not_before - before, 1))))
    long_enough = [
        window for window, stretch in zip(windows, stretches, strict=True) if len(stretch) >= criterion["window"]
    ]
    return next((window for window in windows if window[1].reached), (long_enough or windows)[-1])


def _whole_rounds(variables: list[Mapping[int, float]]) -> list[int]:
    return sorted(set.intersection(*(set(rounds) for rounds in variables)))


def _stretches(rounds: list[int]) -> list[range]:
    """Return ascending rounds as ranges without holes."""
    stretches: list[range] = []
    for number in rounds:
        if stretches and stretches[-1].stop == number:
            stretches[-1] = range(stretches[-1].start, number + 1)
        else:
            stretches.append(range(number, number + 1))
    return stretches


def _variables(loop: pd.DataFrame, criterion: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[int, float]]]:
    """Yield name, metric and {round: sound value} of each tracked variable."""
    for variable in criterion["track"]:
        for name, cells in _tracked(loop, variable).items():
            yield name, variable["metric"], _values(cells, loop, name, variable["metric"])


def _tracked(loop: pd.DataFrame, variable: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Return {label in table `summary`: rows} for cells of a tracked variable."""
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
    """Describe a tracked variable without a cell."""
    return "the cell with " + ", ".join(f"{key} {value}" for key, value in variable.items() if key != "metric")


def _values(cells: pd.DataFrame, loop: pd.DataFrame, name: str, metric: str) -> dict[int, float]:
    rows = sound(cells)
    if cells.empty or rows["round"].duplicated().any():
        raise ValueError(f"{loop['recording'].iloc[0]}: {name} must have exactly one cell in each round")
    return {int(number): float(value) for number, value in zip(rows["round"], rows[metric], strict=True)}


def first_whole_round(loop: pd.DataFrame) -> int:
    """Return the number of the first round wholly after the last interruption.

    The result is 1 without an interruption.
    A round is whole if its first cell came just after the interruption, but not if it was interrupted midway.
    """
    resumed = loop[loop["after_gap"]]
    if resumed.empty:
        return 1
    last = int(resumed["round"].max())
    first_cell = loop[loop["round"] == last].sort_values("cell").iloc[0]
    return last if first_cell["after_gap"] else last + 1
