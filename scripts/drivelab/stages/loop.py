"""The loop step: rounds of cells until steady state, as in the PTS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drivelab.plan.cell import Cell
from drivelab.protocol.history import loop_history, loop_is_steady
from drivelab.stages.cell import Bench, metrics
from drivelab.stages.progress import Progress


def run_loop(bench: Bench, progress: Progress, step: int, fields: Mapping[str, Any]) -> None:
    """Run rounds until the criterion is met or `max_rounds` are done; goes on after what the journal has.

    After an interruption the rounds count from there: those before can be in no window.

    Raises CellFailed when a cell fails.
    """
    recording = bench.recording
    journal = recording.journal()
    if any(line["event"] == "loop" and line["step"] == step for line in journal):
        return
    cells = [Cell(**cell) for cell in fields["cells"]]
    criterion = fields["until"]
    while True:
        history = loop_history(recording.journal(), step, len(cells))
        whole = sum(len(one) == len(cells) for one in history.rounds)
        steady = loop_is_steady(history, fields["cells"], criterion)
        if steady or whole - (history.first_whole_round - 1) >= criterion["max_rounds"]:
            recording.append("loop", step=step, rounds=whole, steady=steady)
            return
        begun = len(history.rounds[-1]) if len(history.rounds) > whole else 0
        for index in range(begun, len(cells)):
            _run(bench, progress, step, whole + 1, index, cells, criterion)


def _run(
    bench: Bench,
    progress: Progress,
    step: int,
    round_number: int,
    index: int,
    cells: list[Cell],
    criterion: Mapping[str, Any],
) -> None:
    cell = cells[index]
    name = f"cells/{step}-round{round_number:02d}-cell{index:02d}"
    fraction = ((round_number - 1) * len(cells) + index) / (criterion["max_rounds"] * len(cells))
    text = f"round {round_number} of at most {criterion['max_rounds']}, cell {index + 1} of {len(cells)}, {cell.label}"
    progress.say(text, fraction)
    place = {"step": step, "round": round_number, "cell": index}
    result, facts = bench.run_cell(
        name, cell, lambda elapsed_s: progress.say(f"{text}, {elapsed_s:.0f} s", fraction), place
    )
    bench.recording.append("cell", **place, workload=cell.to_mapping(), metrics=metrics(result), **facts)
