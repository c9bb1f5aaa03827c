"""The loop step: rounds of cells until steady state, as in the PTS."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drivelab.plan.cell import Cell
from drivelab.protocol.history import loop_history, loop_is_steady
from drivelab.protocol.trace_streams import cells_of_trace
from drivelab.stages.cell import Bench, metrics
from drivelab.stages.progress import Progress
from drivelab.stages.schedules import same_trace


def run_loop(bench: Bench, progress: Progress, step: int, fields: Mapping[str, Any]) -> None:
    """Run rounds until the criterion is met or `max_rounds` are done; goes on after what the journal has.

    After an interruption the rounds count from there: those before can be in no window.

    Raises CellFailed when a cell fails, UserError when the trace that the cells come from is not the one that the
    recording began with.
    """
    recording = bench.recording
    journal = recording.journal()
    if any(line["event"] == "loop" and line["step"] == step for line in journal):
        return
    mappings = fields["cells"] if "cells" in fields else _of_streams(bench, step, fields)
    cells = [Cell(**cell) for cell in mappings]
    criterion = fields["until"]
    while True:
        history = loop_history(recording.journal(), step, len(cells))
        whole = sum(len(one) == len(cells) for one in history.rounds)
        steady = loop_is_steady(history, mappings, criterion)
        if steady or whole - (history.first_whole_round - 1) >= criterion["max_rounds"]:
            recording.append("loop", step=step, rounds=whole, steady=steady)
            return
        begun = len(history.rounds[-1]) if len(history.rounds) > whole else 0
        for index in range(begun, len(cells)):
            _run(bench, progress, step, whole + 1, index, cells, criterion)


def _of_streams(bench: Bench, step: int, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Cells made of the trace's streams, put into the journal with the trace that they come from."""
    recording, path = bench.recording, Path(bench.plan.context["trace_paths"][0])
    name = bench.plan.subject["traces"][0]["name"]
    digest = same_trace(recording, name, path)
    cells = cells_of_trace(fields["streams"], path, bench.device.logical_block_bytes)
    if not any(one["event"] == "streams" and one["step"] == step for one in recording.journal()):
        recording.append("streams", step=step, trace=name, trace_sha256=digest, cells=cells)
    return cells


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
