"""Where a loop stands, worked out from its journal alone, so that an interrupted loop goes on as if it had not been."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drivelab.analysis.steady_state import determine


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
) -> list[list[float]]:
    """One series per tracked variable, a value for each complete round."""
    whole = [one for one in history.rounds if len(one) == len(cells)]
    keys = ("pattern", "read_share", "block_size_bytes")
    series = []
    for variable in criterion["track"]:
        index = next(i for i, cell in enumerate(cells) if all(cell[k] == variable[k] for k in keys))
        series.append([one[index][variable["metric"]] for one in whole])
    return series


def is_steady(history: LoopHistory, cells: Sequence[Mapping[str, Any]], criterion: Mapping[str, Any]) -> bool:
    """Whether every tracked variable is steady over the last window, and the window lies wholly after any gap.

    SNIA SSS PTS, definition of steady state.
    """
    series = tracked(history, cells, criterion)
    rounds, window = len(series[0]), criterion["window"]
    if rounds - window + 1 < history.first_whole_round:
        return False
    return all(
        determine(
            values,
            window=window,
            data_excursion=criterion["data_excursion"],
            slope_excursion=criterion["slope_excursion"],
        ).steady
        for values in series
    )
