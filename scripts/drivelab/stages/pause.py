"""Pauses between the cells of a loop, in which the drive gets no I/O for as long as the plan asks.

What counts is the time from the last I/O of a cell to the first of the next. A process of fio does none for about
0.3 s after its start, while it sets up its threads and logs; so the wait is shorter by what that took before.
fio tells neither moment itself, but when it printed its result and how long the I/O had lasted
(drivelab.stages.cell.io_span); by how much that is late is the same for two cells but for about 10 ms, the time in
which fio's main thread looks after its workers (fio's backend.c, run_threads), and falls out of the difference.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from statistics import median
from typing import Any

from drivelab.stages.cell import Bench
from drivelab.stages.idle import PIECE_S
from drivelab.stages.progress import Progress


class Pauses:
    """Keeps the pauses of one loop, and knows how long they were."""

    def __init__(self, bench: Bench, progress: Progress, owed_s: float = 0.0) -> None:
        """`owed_s` is the pause after a cell of an interrupted measurement: it begins anew, now.

        Where that is not undone, how long the drive was idle altogether is known from the next cell on only.
        """
        self._bench, self._progress = bench, progress
        self._virtual = bench.plan.clock == "virtual"
        self._owed_s = owed_s
        self._idle_known = not owed_s or bench.device.undoes
        self._leads_s: dict[int, list[float]] = {}
        """From the end of a wait to the first I/O, for each cell of the loop: more threads take longer to start."""
        self._woke_s = self._last_io_s = 0.0 if self._virtual else bench.telemetry.now_s()

    def keep(self, text: str, fraction: float, cell: int | None = None) -> float | None:
        """Wait for what is left of the pause that is owed; returns the pause, None where there is none to keep.

        `cell` is the number of the one that follows. After the last cell of a loop no process is to be started, so the
        wait is not shortened.
        """
        owed_s, self._owed_s = self._owed_s, 0.0
        if self._virtual:
            if owed_s:
                self._progress.say(f"pause of {owed_s:g} s, {text}", fraction)
                self._bench.device.idle(owed_s)
            return owed_s or None
        telemetry = self._bench.telemetry
        until_s = self._last_io_s + owed_s - self._lead_s(cell)
        while owed_s and (left_s := until_s - telemetry.now_s()) > 0:
            self._progress.say(f"pause, {left_s:.0f} s of {owed_s:g} s left, {text}", fraction)
            self._bench.device.idle(min(left_s, PIECE_S))
        self._woke_s = telemetry.now_s()
        return owed_s or None

    def idle_ms(self, kept_s: float | None, cell: int, facts: Mapping[str, Any]) -> float | None:
        """How long the drive was without I/O before the run of a cell that has these `facts`.

        None without a pause, and where a measurement that was interrupted goes on: the drive was idle meanwhile, too.
        `kept_s` is what `keep` returned before it. Called once for each run, also of a cell that is run again.
        """
        known, self._idle_known = self._idle_known and kept_s is not None, True
        if self._virtual:
            return 1000 * kept_s if known and kept_s is not None else None
        first_io_s, last_io_s = io_span_s(facts)
        idle_s = first_io_s - self._last_io_s
        self._leads_s.setdefault(cell, []).append(first_io_s - self._woke_s)
        self._last_io_s = last_io_s
        return round(1000 * idle_s, 1) if known else None

    def owe(self, seconds: float) -> None:
        """The cell that has just ended asks for a pause."""
        self._owed_s = seconds

    def _lead_s(self, cell: int | None) -> float:
        """What starting takes: the median, as a start that was held up tells nothing of the next; 0 where unknown."""
        if cell is None or not self._leads_s:
            return 0.0
        return median(self._leads_s.get(cell) or itertools.chain.from_iterable(self._leads_s.values()))

    def idle_so_far_ms(self, kept_s: float | None) -> float | None:
        """Since the last I/O, after a pause that `keep` returned; None as in `idle_ms`."""
        if kept_s is None or not self._idle_known:
            return None
        if self._virtual:
            return 1000 * kept_s
        return round(1000 * (self._bench.telemetry.now_s() - self._last_io_s), 1)


def io_span_s(facts: Mapping[str, Any]) -> tuple[float, float]:
    """First and last I/O of a cell by its line in the journal, Unix time in seconds.

    fio's times lie within `started_s` and `ended_s`, those of its process: a host's clock that was set meanwhile shifts
    them by no more than fio took to start.
    """
    begun_s, ended_s = float(facts["started_s"]), float(facts["ended_s"])
    runtime_s = float(facts["io_ended_s"]) - float(facts["io_started_s"])
    spare_s = max(ended_s - begun_s - runtime_s, 0.0)
    first_s = begun_s + min(max(float(facts["io_started_s"]) - begun_s, 0.0), spare_s)
    return first_s, first_s + runtime_s
