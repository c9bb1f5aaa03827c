"""Where a loop stands, worked out from its journal alone, so that an interrupted loop goes on as if it had not been."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drivelab.protocol.plan_fields import rounds_at_most
from drivelab.protocol.verdict import Metrics, verdict

Place = tuple[int, int]
"""Number of a round, from 1, and of a cell in the round, from 0."""


@dataclass
class _Group:
    """Cells that have the same number of rounds: all of the loop, or one where a cell's rounds follow one another."""

    cells: range
    first_whole_round: int = 1
    """Number of the first round that lies wholly after the last interruption."""
    outcome: Mapping[str, bool] | None = None
    """What the stop rule said when it ended the group; None as long as it has not."""


class LoopHistory:
    """What a loop has measured so far, and what follows.

    Cold rounds come first: they have the numbers from 1 on, and those that count the numbers that follow. No stop rule
    sees a cold round. An interruption concerns the rounds of a group that has not ended: a steady-state window must
    lie wholly after it.
    """

    def __init__(self, cells: Sequence[Mapping[str, Any]], fields: Mapping[str, Any]) -> None:
        """`cells` are those of a round, as mappings; `fields` the loop's, as in a plan."""
        self._mappings, self._until = cells, fields["until"]
        self.cold_rounds = int(fields.get("cold_rounds", 0))
        self._done: list[list[Metrics]] = [[] for _ in cells]
        apart = fields.get("order") == "cells"
        self._groups = [_Group(range(i, i + 1)) for i in range(len(cells))] if apart else [_Group(range(len(cells)))]

    @property
    def cells_done(self) -> int:
        """Cells that are finished, those of cold rounds included."""
        return sum(len(one) for one in self._done)

    @property
    def most_cells(self) -> int:
        """Cells of the whole loop at the most, if nothing interrupts it."""
        return (self.cold_rounds + rounds_at_most(self._until)) * len(self._done)

    def is_cold(self, round_number: int) -> bool:
        return round_number <= self.cold_rounds

    def follow(self, journal: Iterable[Mapping[str, Any]], step: int) -> LoopHistory:
        """Take in what the journal has of the loop that is step number `step`, and of interruptions; returns self."""
        for line in journal:
            if line["event"] == "cell" and line["step"] == step:
                self.add(line["cell"], line["metrics"])
            elif line["event"] == "gap":
                self._interrupt()
        return self

    def add(self, cell: int, metrics: Metrics) -> None:
        """A cell is finished: it belongs to the first round that has not got it yet."""
        self._done[cell].append(metrics)
        group = next(one for one in self._groups if cell in one.cells)
        rounds = [self._done[i][self.cold_rounds :] for i in group.cells]
        if len({len(one) for one in rounds}) == 1 and rounds[0]:
            mappings = [self._mappings[i] for i in group.cells]
            not_before = max(group.first_whole_round - self.cold_rounds, 1)
            group.outcome = verdict(mappings, rounds, self._until, not_before)

    def following(self) -> Place | None:
        """The cell that is to be measured next; None when the stop rule has ended the loop."""
        group = next((one for one in self._groups if one.outcome is None), None)
        if group is None:
            return None
        cell = min(group.cells, key=lambda i: len(self._done[i]))
        return len(self._done[cell]) + 1, cell

    def outcome(self) -> dict[str, Any]:
        """What the journal says of an ended loop: `rounds` that count, the most that a cell has; `cold_rounds` where
        there are any; by stop rule whether all cells are `steady` or `agreed`."""
        rounds = max(len(one) for one in self._done) - self.cold_rounds
        said = [group.outcome for group in self._groups if group.outcome is not None]
        words = {key: all(one[key] for one in said) for key in said[0]}
        return {"rounds": rounds, **({"cold_rounds": self.cold_rounds} if self.cold_rounds else {}), **words}

    def _interrupt(self) -> None:
        for group in self._groups:
            if group.outcome is None:
                group.first_whole_round = max(len(self._done[i]) for i in group.cells) + 1
