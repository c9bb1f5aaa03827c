"""Steady-state windows of recordings, as the table `steady_state`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from drivelab.analysis.labels import UNITS
from drivelab.analysis.soundness import sound
from drivelab.analysis.steady_state import Window, find_window
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
    interrupted has its window in the rounds that lie wholly after the last interruption. A window has no hole: a round
    that lacks a tracked variable, because its cell is unsound or missing, parts the loop, and where the criterion is
    never met between two such rounds, the last stretch that is as long as a window is shown, else the last one. A loop
    without any whole round has no row. Raises ValueError when a tracked variable has no cell at all, or several in a
    round.
    """
    rows: list[dict[str, Any]] = []
    for loop, step, criterion in _loops(cells, criteria):
        rows += _rows(loop, step, criterion)
    return pd.DataFrame(rows, columns=SCHEMAS["steady_state"].names)


def without_whole_round(cells: pd.DataFrame, criteria: Mapping[int, Mapping[str, Any]]) -> list[tuple[str, int]]:
    """Recording and step of the loops that nothing can be said of: no round has all variables of their steady state.

    Arguments and errors as of `windows_table`.
    """
    return [
        (str(loop["recording"].iloc[0]), step)
        for loop, step, criterion in _loops(cells, criteria)
        if not _whole_rounds([rounds for *_, rounds in _variables(loop, criterion)])
    ]


def _loops(
    cells: pd.DataFrame, criteria: Mapping[int, Mapping[str, Any]]
) -> Iterator[tuple[pd.DataFrame, int, Mapping[str, Any]]]:
    """Rows of each loop that looks for steady state, unsound ones too, with its step and criterion."""
    counted = cells[(cells["kind"] == "loop") & ~cells["cold"].astype(bool)]
    for step, criterion in criteria.items():
        if "track" in criterion:
            for _, one in counted[counted["step"] == step].groupby("recording", sort=False):
                yield one, step, criterion


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
        }
        for name, metric, rounds in variables
        for state in [window.states[f"{name}, {metric}"]]
    ]


def _window(
    values: Mapping[str, Mapping[int, float]], stretches: list[range], criterion: Mapping[str, Any], not_before: int
) -> tuple[int, Window]:
    """The number of rounds before a stretch, and the window in it, whose rounds count from the stretch's first."""
    found: list[tuple[int, Window]] = []
    for stretch in stretches:
        before = stretch.start - 1  # cold rounds, or those before a hole
        of_stretch = {name: [rounds[number] for number in stretch] for name, rounds in values.items()}
        found.append((before, find_window(of_stretch, criterion, max(not_before - before, 1))))
    long_enough = [one for one, stretch in zip(found, stretches, strict=True) if len(stretch) >= criterion["window"]]
    return next((one for one in found if one[1].reached), (long_enough or found)[-1])


def _whole_rounds(variables: list[Mapping[int, float]]) -> list[int]:
    return sorted(set.intersection(*(set(rounds) for rounds in variables)))


def _stretches(rounds: list[int]) -> list[range]:
    """Rounds, ascending, as spans without a hole."""
    found: list[range] = []
    for number in rounds:
        if found and found[-1].stop == number:
            found[-1] = range(found[-1].start, number + 1)
        else:
            found.append(range(number, number + 1))
    return found


def _variables(loop: pd.DataFrame, criterion: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[int, float]]]:
    """Name, metric and sound values by round of each tracked variable."""
    for one in criterion["track"]:
        for name, cells in _tracked(loop, one).items():
            yield name, one["metric"], _values(cells, loop, name, one["metric"])


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


def _values(cells: pd.DataFrame, loop: pd.DataFrame, name: str, metric: str) -> dict[int, float]:
    found = sound(cells)
    if cells.empty or found["round"].duplicated().any():
        raise ValueError(f"{loop['recording'].iloc[0]}: {name} has not just one cell in each round")
    return {int(number): float(value) for number, value in zip(found["round"], found[metric], strict=True)}


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
