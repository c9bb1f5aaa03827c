"""Where a loop stands, worked out from its journal alone, so that an interrupted loop goes on as if it had not been."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drivelab.analysis.steady_state import is_steady
from drivelab.protocol.loop_cells import matches


@dataclass(frozen=True)
class LoopHistory:
    """What a loop has measured so far."""

    rounds: tuple[tuple[Mapping[str, float], ...], ...]
    """Metrics of every finished cell, by round and order in the round; the last round may be unfinished."""
    first_whole_round: int
    """Number, from 1, of the first round that lies wholly after the last interruption."""


def loop_history(journal: Iterable[Mapping[str, Any]], step: int, cells: int) -> LoopHistory:
    """History of the loop that is step number `step`, with `cells` cells a round."""
    done: list[Mapping[str, float]] = []
    first_whole_round = 1
    for line in journal:
        if line["event"] == "cell" and line["step"] == step:
            done.append(line["metrics"])
        elif line["event"] == "gap":
            first_whole_round = -(-len(done) // cells) + 1
    rounds = tuple(tuple(done[i : i + cells]) for i in range(0, len(done), cells))
    return LoopHistory(rounds, first_whole_round)


def tracked(
    history: LoopHistory, cells: Sequence[Mapping[str, Any]], criterion: Mapping[str, Any]
) -> dict[str, list[float]]:
    """For each tracked variable a value for each complete round."""
    whole = [one for one in history.rounds if len(one) == len(cells)]
    series: dict[str, list[float]] = {}
    for variable in criterion["track"]:
        for index, cell in enumerate(cells):
            if matches(cell, variable):
                series[f"{index}/{variable['metric']}"] = [one[index][variable["metric"]] for one in whole]
    return series


def loop_is_steady(history: LoopHistory, cells: Sequence[Mapping[str, Any]], criterion: Mapping[str, Any]) -> bool:
    """Whether every tracked variable is steady over the last window, and the window lies wholly after any gap."""
    return is_steady(tracked(history, cells, criterion), criterion, history.first_whole_round)
