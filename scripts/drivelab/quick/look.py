"""Take a quick look: measure one or several places in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from drivelab.core.terminal import visible
from drivelab.core.units import format_duration
from drivelab.plan.plan import Plan
from drivelab.recording.writer import Recording
from drivelab.report.numbers import spelled_out
from drivelab.run.device import open_device
from drivelab.run.fio_cell import Bench
from drivelab.run.measure import bench_of, turns
from drivelab.run.places import place
from drivelab.run.progress import Progress

_ROUNDS_SHARE = 0.75
"""Share of the time after which the rounds end early: the idle time and the sustained write need the rest."""


class _Shown(Progress):
    """Progress that is also shown on the terminal, with the time of all places."""

    def __init__(self, plan: Plan, show: Callable[[str], None], longest_s: float) -> None:
        super().__init__(plan, "measure")
        self._name, self._show, self._longest_s, self._started_s = plan.drive, show, longest_s, time.monotonic()

    def say(self, text: str, fraction: float) -> None:
        super().say(text, fraction)
        since, longest = (format_duration(s) for s in (time.monotonic() - self._started_s, self._longest_s))
        self._show(visible(f"{since} of about {longest}: {self._name}, {spelled_out(text)}"))


def measure(plans: Sequence[Plan], show: Callable[[str], None], longest_s: float) -> None:
    """Measure all plans, cell by cell in turns, within about `longest_s`, and finish their recordings.

    Raises UserError if a cell fails; the other recordings then stay unfinished.
    """
    rounds_end_s = time.monotonic() + _ROUNDS_SHARE * longest_s
    with ExitStack() as stack:
        progress = [stack.enter_context(_Shown(plan, show, longest_s)) for plan in plans]
        stack.enter_context(place(plans[0], progress[0], last=True))
        recordings = [Recording(plan) for plan in plans]
        benches: list[Bench] = []
        with ExitStack() as open_benches:
            for plan, recording, shown in zip(plans, recordings, progress, strict=True):
                device = open_benches.enter_context(open_device(plan))
                recording.set_aside("a quick look that was interrupted is not continued")
                opened = bench_of(plan, device, recording, None, shown, alone=True)
                benches.append(open_benches.enter_context(opened))
            _in_turns(benches, progress, rounds_end_s)
        for recording in recordings:
            recording.finish()


def _in_turns(benches: Sequence[Bench], progress: Sequence[Progress], rounds_end_s: float) -> None:
    """Run one cell of each bench after the other until all are done."""
    running = [(bench, turns(bench, shown)) for bench, shown in zip(benches, progress, strict=True)]
    out_of_time: bool | None = None  # a generator takes None first
    while running:
        for bench, steps in list(running):
            try:
                steps.send(out_of_time)
            except StopIteration:
                running.remove((bench, steps))
                continue
            if len(running) > 1:
                bench.give_way()
        out_of_time = time.monotonic() > rounds_end_s
