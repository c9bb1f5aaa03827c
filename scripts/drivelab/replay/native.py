"""Runs drivelab's own replay engine (sources in `native/replay`) and reads what its results say about the run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab import parent
from drivelab.errors import UserError
from drivelab.fio.document import CellFailed
from drivelab.native import engine_path
from drivelab.process import Runner, Tick, Timing, run_program
from drivelab.replay.records import MOST_IN_FLIGHT, PREPARED, RUNNING, STATES, make_results, open_results, open_schedule

RESULTS = "results.bin"
GRACE_S = 30.0
"""How much longer than its own watchdog the engine may show no sign of life."""
_EXIT_S = 5.0
"""How long it may take from its last word to its end: one whose threads wait for a drive that hangs cannot end."""


@dataclass(frozen=True)
class EngineOptions:
    """How the engine is to work, whatever the schedule."""

    depth_limit: int = MOST_IN_FLIGHT
    """Requests in flight at the most, beside what the schedule itself asks for."""
    watchdog_s: float = 60.0
    """With requests in flight and none completed for so long the target hangs."""
    go_on: bool = False
    """After a failed request."""
    cpu: int | None = None
    realtime_priority: int | None = None
    """SCHED_FIFO, 1 to 99; the CPU is then the engine's alone whenever it spins."""
    seed: int | None = None
    """Of the data written. None: another one each time, so that no drive has seen the data before."""
    runtime_s: float | None = None
    requests: int | None = None
    """More than the schedule has: it begins anew, which only one without deadlines and dependencies can."""
    spin_us: int | None = None
    """Without a sleep before a request is due. None: what the engine finds to be this host's wake-up noise."""

    def __post_init__(self) -> None:
        cpus = os.cpu_count() or 1
        for name, value, least, most in (
            ("depth limit", self.depth_limit, 1, MOST_IN_FLIGHT),
            ("CPU", self.cpu, 0, cpus - 1),
            ("real-time priority", self.realtime_priority, 1, 99),
        ):
            if value is not None and not least <= value <= most:
                raise UserError(f"replay {name} is {value}; give a number from {least} to {most}")
        if not self.watchdog_s > 0:
            raise UserError(f"replay watchdog is {self.watchdog_s:g} s; give a time above 0")


def possible() -> str | None:
    """Why io_uring cannot be used here, in words, or None."""
    done = parent.run([_program(), "--possible"])
    return None if done.returncode == 0 else _words(done.stderr)


def command(target_path: str, identity: str, schedule: Path, results: Path, options: EngineOptions) -> list[str]:
    """The engine's command line. `identity` is that of the target as it was approved (target.h)."""
    words = [_program(), "--schedule", str(schedule), "--results", str(results), "--target", target_path, "--identity",
             identity, "--depth", str(options.depth_limit), "--watchdog-s", f"{options.watchdog_s:g}"]  # fmt: skip
    words += ["--go-on"] if options.go_on else []
    for option, value in (
        ("--cpu", options.cpu),
        ("--realtime", options.realtime_priority),
        ("--seed", options.seed),
        ("--runtime-s", options.runtime_s),
        ("--requests", options.requests),
        ("--spin-us", options.spin_us),
    ):
        words += [] if value is None else [option, str(value)]
    return words


def run_engine(
    target_path: str,
    identity: str,
    schedule: Path,
    directory: Path,
    options: EngineOptions,
    *,
    on_tick: Tick = lambda elapsed_s: None,
    on_hang: Callable[[], None] = lambda: None,
    runner: Runner = run_program,
) -> Timing:
    """Replay a schedule and leave results.bin, command.json, stdout, stderr and exit_code in `directory`.

    `on_tick` is called about once a second with the seconds since the start. Returns however the replay ended once it
    had begun: `engine_report` tells, also of an engine that was killed midway. One that shows no sign of life for
    GRACE_S longer than its watchdog, or does not end when it should, is killed, `on_hang` called if that is in vain.
    Raises CellFailed with the engine's words when it refused to begin, UserError when the schedule is none, OSError
    without room for the results.
    """
    results = directory / RESULTS
    header = open_schedule(schedule).header
    make_results(results, options.requests or header["count"], header["checksum"])
    words = command(target_path, identity, schedule.absolute(), results.absolute(), options)
    (directory / "command.json").write_text(json.dumps(words))
    watchdog = _Watchdog(results, options.watchdog_s)

    def tick(elapsed_s: float) -> None:
        watchdog.look(elapsed_s)
        on_tick(elapsed_s)

    started_s = time.monotonic()
    try:
        timing = runner(words, directory, tick, on_hang, options.watchdog_s + _EXIT_S)
    except (_NoSignOfLife, CellFailed) as failure:  # the latter of one that cannot be killed
        if open_results(results).header["state"] == PREPARED:
            raise CellFailed(str(failure)) from None
        (directory / "exit_code").write_text("-9\n")
        return Timing(started_s, time.monotonic())
    if open_results(results).header["state"] == PREPARED:
        status = int((directory / "exit_code").read_text())
        said = _words((directory / "stderr").read_text(errors="replace"))
        raise CellFailed(said if status > 0 else f"the replay engine was killed by signal {-status} before it began")
    return timing


def engine_report(directory: Path) -> dict[str, Any]:
    """What the results in `directory` say about the run, JSON-able.

    `state` is one of `records.STATES`; "running": the engine was killed. Raises UserError when there are no results.
    """
    header = open_results(directory / RESULTS).header
    report = {
        name: header[name]
        for name in (
            "start_monotonic_ns", "start_realtime_ns", "issued", "completed", "failed", "end_ns", "heartbeat_ns",
            "most_in_flight", "signal",
        )
    }  # fmt: skip
    return {
        "state": STATES[header["state"]],
        **report,
        "first_failed": header["first_failed"] - 1 if header["first_failed"] else None,
        "requests": header["capacity"],
        "wakeup_us": {name: header[f"wakeup_{name}_ns"] / 1000 for name in ("p50", "p95", "p99", "max")},
        "spin_us": header["spin_ns"] / 1000,
        "buffers": "plain" if header["plain_buffers"] else "registered",
    }


def _program() -> str:
    program = engine_path()
    if not program.exists():
        raise UserError("drivelab's replay engine is missing or not of this version; run './drivelab setup'")
    return str(program)


def _words(stderr: str) -> str:
    """The engine's sentence, which it prints last."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    return lines[-1].removeprefix("drivelab-replay: ") if lines else "the replay engine ended without a word"


class _NoSignOfLife(Exception):  # noqa: N818 (an event, as StopIteration is)
    """The engine has to be ended."""


class _Watchdog:
    """Over the engine's own: a process in uninterruptible sleep looks at no clock."""

    def __init__(self, results: Path, watchdog_s: float) -> None:
        self._path, self._watchdog_s = results, watchdog_s
        self._last: tuple[int, ...] = ()
        self._alive_s = 0.0

    def look(self, elapsed_s: float) -> None:
        """Raises _NoSignOfLife when it is time to end the engine."""
        header = open_results(self._path).header
        signs = (header["state"], header["heartbeat_ns"], header["completed"])
        if signs != self._last:
            self._last, self._alive_s = signs, elapsed_s
        patience_s = _EXIT_S if header["state"] > RUNNING else self._watchdog_s + GRACE_S
        if elapsed_s - self._alive_s > patience_s:
            raise _NoSignOfLife(f"the replay engine gave no sign of life for {patience_s:.0f} s; it was killed")
