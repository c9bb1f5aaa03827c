"""Derive a loop's progress from its journal, so that it can resume."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drivelab.criteria.repeats import FEWEST, MOST, next_action
from drivelab.criteria.steady_state import is_steady
from drivelab.plan.cell import rounds_at_most
from drivelab.plan.loop_cells import matches

Metrics = Mapping[str, float]
"""Values of a finished cell by metric name."""


def verdict(
    cells: Sequence[Mapping[str, Any]],
    rounds: Sequence[Sequence[Metrics]],
    until: Mapping[str, Any],
    not_before: int = 1,
) -> dict[str, bool] | None:
    """Return the verdict on a loop that ends now, or None if it continues.

    Args:
        cells: the loop's cells.
        rounds: for each cell, the metrics of the counted rounds.
        until: the stop rule as in a plan.
        not_before: the first round after an interruption. Only a steady-state window depends on it.

    `steady` is true, or false at `max_rounds` since `not_before`. `agreed` is true, or false after the most repeats. A
    fixed number of rounds gives an empty verdict. Raises ValueError for a steady state without a tracked cell.
    """
    count = len(rounds[0])
    if "rounds" in until:
        return {} if count >= until["rounds"] else None
    if "threshold" in until:
        return _agreement(rounds, until)
    if is_steady(tracked(cells, rounds, until), until, not_before):
        return {"steady": True}
    return {"steady": False} if count - (not_before - 1) >= until["max_rounds"] else None


def tracked(
    cells: Sequence[Mapping[str, Any]], rounds: Sequence[Sequence[Metrics]], until: Mapping[str, Any]
) -> dict[str, list[float]]:
    """Return one value per round for each tracked variable. Arguments as for `verdict`."""
    return {
        f"{index}/{variable['metric']}": [metrics[variable["metric"]] for metrics in rounds[index]]
        for variable in until["track"]
        for index, cell in enumerate(cells)
        if matches(cell, variable)
    }


def _agreement(rounds: Sequence[Sequence[Metrics]], until: Mapping[str, Any]) -> dict[str, bool] | None:
    """Return the verdict when every cell agrees after three, five or seven rounds."""
    actions = [next_action([metrics[until["metric"]] for metrics in cell], 100 * until["threshold"]) for cell in rounds]
    if all(action.enough for action in actions):
        return {"agreed": True}
    return {"agreed": False} if len(rounds[0]) == MOST else None


Place = tuple[int, int]
"""Number of a round, from 1, and number of a cell in the round, from 0."""


@dataclass
class _Group:
    """Cells with common rounds: all of the loop, or one with `order: cells`."""

    cells: range
    first_whole_round: int = 1
    """First round that lies wholly after the last interruption."""
    outcome: Mapping[str, bool] | None = None
    """Verdict of the stop rule that ended the group; None before that."""


class LoopHistory:
    """Progress of a loop: the finished cells, and the next one.

    Cold rounds come first and have the numbers from 1; counted rounds have the numbers after them. Stop rules ignore
    cold rounds. In a group that has not ended, a steady-state window must lie wholly after the last interruption.
    """

    def __init__(self, cells: Sequence[Mapping[str, Any]], fields: Mapping[str, Any]) -> None:
        """Take the `cells` of a round, as mappings, and the loop's `fields`, as in a plan."""
        self._mappings, self._until = cells, fields["until"]
        self.cold_rounds = int(fields.get("cold_rounds", 0))
        self._done: list[list[Metrics]] = [[] for _ in cells]
        by_cell = fields.get("order") == "cells"
        self._groups = [_Group(range(i, i + 1)) for i in range(len(cells))] if by_cell else [_Group(range(len(cells)))]

    @property
    def cells_done(self) -> int:
        """Return the number of finished cells, including cold rounds."""
        return sum(map(len, self._done))

    @property
    def most_cells(self) -> int:
        """Return the most cells that the whole loop can have without interruptions."""
        return (self.cold_rounds + rounds_at_most(self._until)) * len(self._done)

    def is_cold(self, round_number: int) -> bool:
        return round_number <= self.cold_rounds

    def follow(self, journal: Iterable[Mapping[str, Any]], step: int) -> LoopHistory:
        """Read the cells of step number `step` and the interruptions from the journal. Return self."""
        for line in journal:
            if line["event"] == "cell" and line["step"] == step:
                self.add(line["cell"], line["metrics"])
            elif line["event"] == "gap":
                self._interrupt()
        return self

    def add(self, cell: int, metrics: Metrics) -> None:
        """Add a finished cell to the first round that does not have it yet."""
        self._done[cell].append(metrics)
        group = next(group for group in self._groups if cell in group.cells)
        rounds = [self._done[i][self.cold_rounds :] for i in group.cells]
        if len(set(map(len, rounds))) == 1 and rounds[0]:
            mappings = [self._mappings[i] for i in group.cells]
            not_before = max(group.first_whole_round - self.cold_rounds, 1)
            group.outcome = verdict(mappings, rounds, self._until, not_before)

    def following(self) -> Place | None:
        """Return the next cell to measure, or None if the stop rule has ended the loop."""
        group = next((group for group in self._groups if group.outcome is None), None)
        if group is None:
            return None
        cell = min(group.cells, key=lambda i: len(self._done[i]))
        return len(self._done[cell]) + 1, cell

    def expected_after(self, place: Place) -> Place | None:
        """Return the cell that follows `place`, the cell at work, if the stop rule does not end the loop then.

        None after the last possible cell.
        """
        round_number, cell = place
        number = next(number for number, group in enumerate(self._groups) if cell in group.cells)
        behind = [i for i in self._groups[number].cells if i != cell and len(self._done[i]) < round_number]
        if behind:
            return round_number, min(behind, key=lambda i: len(self._done[i]))
        if round_number - self.cold_rounds < rounds_at_most(self._until):
            return round_number + 1, self._groups[number].cells[0]
        return (1, self._groups[number + 1].cells[0]) if number + 1 < len(self._groups) else None

    def may_end(self) -> bool:
        """Return whether the cells have a result now: the same odd number of counted rounds, at least FEWEST."""
        counts = {len(done) - self.cold_rounds for done in self._done}
        return len(counts) == 1 and min(counts) >= FEWEST and min(counts) % 2 == 1

    def outcome(self) -> dict[str, Any]:
        """Return the journal's fields for an ended loop.

        `rounds` is the largest number of counted rounds of a cell. `cold_rounds` is there if above 0. By stop rule,
        `steady` or `agreed` says whether all cells are. A loop that ended before its stop rule was out of time.
        """
        rounds = max(map(len, self._done)) - self.cold_rounds
        common = {"rounds": rounds, **({"cold_rounds": self.cold_rounds} if self.cold_rounds else {})}
        outcomes = [group.outcome for group in self._groups if group.outcome is not None]
        if len(outcomes) < len(self._groups):
            return {**common, "ended_by": "time"}
        return {**common, **{key: all(outcome[key] for outcome in outcomes) for key in outcomes[0]}}

    def _interrupt(self) -> None:
        for group in self._groups:
            if group.outcome is None:
                group.first_whole_round = max(len(self._done[i]) for i in group.cells) + 1
