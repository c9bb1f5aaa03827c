"""The idle step: time without I/O, for the drive's background work."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from drivelab.core.programs import Timing
from drivelab.run.fio_cell import Bench
from drivelab.run.progress import Progress

PIECE_S = 1.0
"""Seconds between progress messages."""


def run_idle(bench: Bench, progress: Progress, step: int, fields: Mapping[str, Any]) -> None:
    """Leave the drive idle for `time_s`; an interrupted idle time restarts, so that it is never split."""
    if any(line["event"] == "idle" and line["step"] == step for line in bench.recording.journal()):
        return
    time_s = fields["time_s"]
    virtual = bench.plan.clock == "virtual"

    def wait(folder: Path) -> Timing | None:
        if virtual:
            progress.say(f"idle for {time_s:g} s", 0.0)
            bench.device.idle(time_s)
            return None
        started_s = now_s = time.monotonic()
        while (left_s := started_s + time_s - now_s) > 0:
            progress.say(f"idle, {time_s - left_s:.0f} s of {time_s:g} s", 1 - left_s / time_s)
            bench.device.idle(min(left_s, PIECE_S))
            now_s = time.monotonic()
        return Timing(started_s, now_s)

    _, facts = bench.run(f"cells/{step}-idle", wait)
    phase = {key: fields[key] for key in ("phase", "phase_pass") if key in fields}
    bench.recording.append("idle", step=step, idle_s=time_s, **phase, **facts)


class Pauses:
    """Keeps the pauses of one loop, and measures them."""

    def __init__(self, bench: Bench, progress: Progress, owed_s: float = 0.0) -> None:
        """Start; `owed_s` is an interrupted pause, which restarts now.

        Unless the device undoes the interruption, the drive's idle time is known only from the next cell on.
        """
        self._bench, self._progress = bench, progress
        self._virtual = bench.plan.clock == "virtual"
        self._owed_s = owed_s
        self._idle_known = not owed_s or bench.device.undoes
        self._leads_s: dict[int, list[float]] = {}
        """Seconds from the end of a wait to the first I/O, by cell: more threads take longer to start."""
        self._woke_s = self._last_io_s = 0.0 if self._virtual else bench.telemetry.now_s()

    def keep(self, text: str, fraction: float, cell: int | None = None) -> float | None:
        """Wait for the rest of the pause that is due.

        Return the pause, or None if none is due. `cell` is the number of the next cell. After the last cell of a loop
        no process starts, so the wait is not shortened.
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
        """Return how long the drive was without I/O before the cell run with these `facts`.

        None without a pause, and after an interruption, which is also idle time. `kept_s` is the result of `keep`
        before the run. Call this once for each run, also when a cell is repeated.
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
        """Note the pause after the cell that has just ended."""
        self._owed_s = seconds

    def _lead_s(self, cell: int | None) -> float:
        """Return the start-up time: the median, so that one delayed start has no effect; 0 if unknown."""
        if cell is None or not self._leads_s:
            return 0.0
        return median(self._leads_s.get(cell) or itertools.chain.from_iterable(self._leads_s.values()))

    def idle_so_far_ms(self, kept_s: float | None) -> float | None:
        """Return the time since the last I/O, after a pause from `keep`; None as in `idle_ms`."""
        if kept_s is None or not self._idle_known:
            return None
        if self._virtual:
            return 1000 * kept_s
        return round(1000 * (self._bench.telemetry.now_s() - self._last_io_s), 1)


def io_span_s(facts: Mapping[str, Any]) -> tuple[float, float]:
    """Return the times of a cell's first and last I/O from its journal line, Unix time in seconds.

    fio's times are clamped to its process's `started_s` and `ended_s`. So if the host's clock was set in between, they
    shift by at most fio's start-up time.
    """
    begun_s, ended_s = float(facts["started_s"]), float(facts["ended_s"])
    runtime_s = float(facts["io_ended_s"]) - float(facts["io_started_s"])
    spare_s = max(ended_s - begun_s - runtime_s, 0.0)
    first_s = begun_s + min(max(float(facts["io_started_s"]) - begun_s, 0.0), spare_s)
    return first_s, first_s + runtime_s
