"""Take a quick look: measure one or several places in turns, and write the tables of each recording."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import pandas as pd

from drivelab.analysis.values.recording_tables import found_in, recording_tables
from drivelab.core.terminal import visible
from drivelab.plan.plan import Plan
from drivelab.recording.folders import tables_folder
from drivelab.recording.writer import Recording
from drivelab.run.device import open_device
from drivelab.run.fio_cell import Bench
from drivelab.run.measure import bench_of, turns
from drivelab.run.places import place
from drivelab.run.progress import Progress
from drivelab.tables import io

Say = Callable[[Plan, str, float], None]
"""Takes a plan, its present activity, and the share of its look that is done."""


class _Shown(Progress):
    """Progress that is also shown on the terminal."""

    def __init__(self, plan: Plan, say: Say) -> None:
        super().__init__(plan, "measure")
        self._shown_plan, self._say = plan, say

    def say(self, text: str, fraction: float) -> None:
        super().say(text, fraction)
        self._say(self._shown_plan, visible(text), fraction)


def look(
    plans: Sequence[Plan],
    say: Say,
    on_line: Callable[[Plan, Sequence[Mapping[str, Any]]], None],
    out_of_time: Callable[[], bool],
) -> None:
    """Measure all plans, cell by cell in turns, and finish their recordings.

    The rounds end early when `out_of_time`. `on_line` is called with the journal of a plan after each of its cells.
    Raises UserError as `measure` does; the other recordings then stay unfinished.
    """
    with ExitStack() as stack:
        progress = [stack.enter_context(_Shown(plan, say)) for plan in plans]
        stack.enter_context(place(plans[0], progress[0], last=True))
        recordings = [Recording(plan) for plan in plans]
        benches: list[Bench] = []
        with ExitStack() as open_benches:
            for plan, recording, shown in zip(plans, recordings, progress, strict=True):
                device = open_benches.enter_context(open_device(plan))
                recording.set_aside("a quick look that was interrupted is not continued")
                opened = bench_of(plan, device, recording, None, shown, alone=True)
                benches.append(open_benches.enter_context(opened))
            for bench in in_turns(benches, progress, out_of_time):
                on_line(bench.plan, bench.recording.journal())
        for recording in recordings:
            recording.finish()


def in_turns(
    benches: Sequence[Bench], progress: Sequence[Progress], out_of_time: Callable[[], bool]
) -> Iterator[Bench]:
    """Run one cell of each bench after the other until all are done; yield the bench after each cell."""
    running = [(bench, turns(bench, shown)) for bench, shown in zip(benches, progress, strict=True)]
    begun: set[int] = set()
    while running:
        for bench, steps in list(running):
            try:
                steps.send(out_of_time() if id(steps) in begun else None)
            except StopIteration:
                running.remove((bench, steps))
                continue
            begun.add(id(steps))
            yield bench
            if len(running) > 1:
                bench.give_way()


def write_tables(plan: Plan, *, reduced: bool) -> dict[str, pd.DataFrame]:
    """Write the tables of a finished recording where a study has them, and return them."""
    recording = plan.recording_path
    tables = recording_tables(recording, reduced=reduced)
    tables |= found_in(recording, tables)
    for name, table in tables.items():
        io.write(table, tables_folder(recording) / f"{name}.parquet", name)
    return tables
