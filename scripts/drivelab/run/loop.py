"""The loop step: rounds of cells until steady state (as in the PTS), until they agree, or a given number."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.plan.cell import Cell, pause_s, rounds_at_most
from drivelab.run.fio_cell import Bench, metrics
from drivelab.run.history import LoopHistory, Place
from drivelab.run.idle import Pauses
from drivelab.run.points import resolved
from drivelab.run.progress import Progress
from drivelab.run.schedules import cells_of_trace, same_trace

Turns = Generator[None, bool | None, None]
"""Steps at work: yields where another measurement may run, and takes whether the time is over."""


def run_loop(bench: Bench, progress: Progress, step: int, fields: Mapping[str, Any]) -> Turns:
    """Run rounds until the stop rule ends the loop; yield after each cell, so that another loop may run between.

    True, sent in return, ends the loop as soon as its rounds have a result.

    Resume after the last cell in the journal. After an interruption, a loop with a steady-state rule counts its rounds
    from there: earlier rounds cannot be in the window. An interrupted pause restarts. The journal line of a paused cell
    has the pause after the cell, `pause_s`, and the drive's idle time before the cell, `idle_ms`. The loop's line has
    the idle time after its last cell. Both idle times are omitted at the first pause after an interruption, because the
    time of the last I/O is unknown.

    Raises CellFailed when a cell fails. Raises UserError when the trace of the cells changed since the recording
    started, or when no cell of an earlier loop gives the point of this loop.
    """
    journal = bench.recording.journal()
    if any(line["event"] == "loop" and line["step"] == step for line in journal):
        return
    fields = resolved(bench, fields)
    mappings = fields["cells"] if "cells" in fields else _of_streams(bench, step, fields)
    loop = _Loop(step, fields, [Cell(**cell) for cell in mappings], LoopHistory(mappings, fields).follow(journal, step))
    pauses = Pauses(bench, progress, loop.pause_after_last(journal))
    while (place := loop.history.following()) is not None:
        _run(bench, progress, pauses, loop, place)
        out_of_time = yield
        if out_of_time and loop.history.may_end():
            break
    bench.forget()
    kept_s = pauses.keep("after the last cell", 1.0)
    idle_ms = pauses.idle_so_far_ms(kept_s)
    idle = {} if idle_ms is None else {"idle_ms": idle_ms}
    bench.recording.append("loop", step=step, **loop.history.outcome(), **idle)


def _of_streams(bench: Bench, step: int, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the cells of the trace's streams; append them and the trace's digest to the journal."""
    recording, path = bench.recording, Path(bench.plan.context["trace_paths"][0])
    name = bench.plan.subject["traces"][0]["name"]
    digest = same_trace(recording, name, path)
    cells = cells_of_trace(fields["streams"], path, bench.device.logical_block_bytes)
    if not any(line["event"] == "streams" and line["step"] == step for line in recording.journal()):
        recording.append("streams", step=step, trace=name, trace_sha256=digest, cells=cells)
    return cells


@dataclass(frozen=True)
class _Loop:
    """A loop of the plan with its cells and progress."""

    step: int
    fields: Mapping[str, Any]
    cells: list[Cell]
    history: LoopHistory

    def pause_after(self, cell: Cell) -> float:
        return pause_s(self.fields, cell.runtime_s or 0.0)

    def pause_after_last(self, journal: list[dict[str, Any]]) -> float:
        """Return the pause after the journal's last cell, which may have been interrupted; 0 if there is none."""
        done = [line["cell"] for line in journal if line["event"] == "cell" and line["step"] == self.step]
        return self.pause_after(self.cells[done[-1]]) if done else 0.0

    def repeats_alike(self, place: Place) -> bool:
        """Return whether a repeated cell finds the drive as it was: it only reads, or the rounds repeat it too.

        A cell of a cold round is not worth it.
        """
        if self.history.is_cold(place[0]):
            return False
        only_reads = self.cells[place[1]].read_share == 100
        return "phase" not in self.fields and (only_reads or rounds_at_most(self.fields["until"]) > 1)

    def folder(self, place: Place) -> str:
        return f"cells/{self.step}-round{place[0]:02d}-cell{place[1]:02d}"

    def words(self, place: Place) -> str:
        """Describe the place for progress messages."""
        round_number, index = place
        counted, rule = round_number - self.history.cold_rounds, self.fields["until"]
        number = f"cold round {round_number} of {self.history.cold_rounds}"
        if not self.history.is_cold(round_number):
            number = f"round {counted} of {'' if 'rounds' in rule else 'at most '}{rounds_at_most(rule)}"
        return f"{number}, cell {index + 1} of {len(self.cells)}, {self.cells[index].label}"


def _run(bench: Bench, progress: Progress, pauses: Pauses, loop: _Loop, place: Place) -> None:
    round_number, index = place
    cell, text = loop.cells[index], loop.words(place)
    name = loop.folder(place)
    fraction = loop.history.cells_done / loop.history.most_cells
    after_s = loop.pause_after(cell)
    kept_s = pauses.keep(f"before {text}", fraction, index)
    if not bench.has_prepared:
        progress.say(text, fraction)
    numbers = {"step": loop.step, "round": round_number, "cell": index}

    def before_again(facts: dict[str, Any]) -> None:
        nonlocal kept_s
        if after_s:
            pauses.idle_ms(kept_s, index, facts)
            pauses.owe(after_s)
            kept_s = pauses.keep(f"before {text} again", fraction, index)

    following = _preparable(bench, loop, place)

    def on_tick(elapsed_s: float) -> None:
        nonlocal following
        if following is not None:
            bench.prepare(*following)
            following = None
        progress.say(f"{text}, {elapsed_s:.0f} s", fraction)

    result, facts = bench.run_cell(name, cell, on_tick, numbers, before_again, alike=loop.repeats_alike(place))
    marks: dict[str, Any] = {"cold": True} if loop.history.is_cold(round_number) else {}
    if after_s:
        marks["pause_s"] = after_s
        if (idle_ms := pauses.idle_ms(kept_s, index, facts)) is not None:
            marks["idle_ms"] = idle_ms
        pauses.owe(after_s)
    values = metrics(result)
    append = bench.recording.append_soon if bench.has_prepared else bench.recording.append
    append("cell", **numbers, workload=cell.to_mapping(), metrics=values, **marks, **facts)
    loop.history.add(index, values)


def _preparable(bench: Bench, loop: _Loop, place: Place) -> tuple[str, Cell] | None:
    """Return folder and cell of what to prepare while the cell at `place` runs, from its first tick; None for nothing.

    Preparing takes a CPU for 0.2 s, so the cell must leave one free. With a pause the gap is part of the protocol.
    """
    expected, cell = loop.history.expected_after(place), loop.cells[place[1]]
    if expected is None or loop.pause_after(cell) or cell.total_threads >= len(os.sched_getaffinity(0)):
        return None
    following = loop.cells[expected[1]]
    if not bench.device.can_prepare():
        return None
    return loop.folder(expected), following
