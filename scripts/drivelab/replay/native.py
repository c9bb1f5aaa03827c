"""Run drivelab's replay engine (source: `native/replay`) and read its results."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from drivelab.core import programs
from drivelab.core.errors import CellFailed, UserError
from drivelab.core.programs import Tick, Timing, run_program
from drivelab.drives import sysfs
from drivelab.drives.nvme import can_crash, character_name
from drivelab.drives.target import Target
from drivelab.host.machine import Machine
from drivelab.host.placement import Topology, placement_on, topology
from drivelab.native import built_engine_path
from drivelab.plan.replay_choice import MOST_IN_FLIGHT
from drivelab.replay.engine_records import PREPARED, RUNNING, STATES, make_results, open_results, open_schedule

RESULTS = "results.bin"
MOST_THREADS = 64
GRACE_S = 30.0
"""The engine may be silent for this much longer than its own watchdog."""
THREAD_IOPS = 400_000
"""Rate that one thread keeps with margin; benchmarks/replay_rate.py measures it."""
THREAD_DEPTH = 128
"""Requests in flight that one thread keeps busy, if the drive alone sets the rate."""
_BURST = 1000
"""Requests over which the highest rate is taken."""
_EXIT_S = 5.0
"""Limit from the engine's final state to its exit: threads that wait for a hung drive prevent the exit."""


@dataclass(frozen=True)
class EngineOptions:
    """Engine settings that do not depend on the schedule."""

    depth_limit: int = MOST_IN_FLIGHT
    """Most requests in flight; the schedule may limit further."""
    watchdog_s: float = 60.0
    """The target hangs if requests are in flight and none completes for this long."""
    go_on: bool = False
    """Continue after a failed request."""
    threads: int | None = None
    """Issuing threads; None: as many as rate, depth and CPUs call for (`issuing`), else one.
    CPUs without a number of threads mean a thread on each."""
    cpus: tuple[int, ...] = ()
    """A CPU for each thread; empty: any."""
    polled: bool = False
    """Poll the driver for completions instead of waiting for interrupts; never sleep with requests in flight."""
    kernel_thread: bool = False
    """A thread of the kernel submits (SQPOLL); it occupies a CPU."""
    nvme: bool = False
    """Send NVMe commands to the namespace's character device, past the block layer."""
    realtime_priority: int | None = None
    """SCHED_FIFO, 1 to 99; a spinning engine then occupies its CPU alone."""
    seed: int | None = None
    """Seed of the first 8 bytes of each written block. None: a new seed each time, so that the data is new to every
    drive."""
    runtime_s: float | None = None

    def __post_init__(self) -> None:
        if self.cpus and self.threads is None:
            object.__setattr__(self, "threads", len(self.cpus))
        cpus = os.cpu_count() or 1
        for name, value, least, most in (
            ("depth limit", self.depth_limit, 1, MOST_IN_FLIGHT),
            ("threads", self.threads, 1, MOST_THREADS),
            *(("CPU", cpu, 0, cpus - 1) for cpu in self.cpus),
            ("real-time priority", self.realtime_priority, 1, 99),
        ):
            if value is not None and not least <= value <= most:
                raise UserError(f"replay {name} is {value}; give a number from {least} to {most}")
        if self.cpus and len(self.cpus) != self.threads:
            raise UserError(
                f"the numbers of threads ({self.threads}) and CPUs ({len(self.cpus)}) differ; name one CPU a thread"
            )
        if not self.watchdog_s > 0:
            raise UserError(f"replay watchdog is {self.watchdog_s:g} s; give a time above 0")


def issuing(options: EngineOptions, target: Target, schedule: Path) -> EngineOptions:
    """Return the options with threads and CPUs, if neither was chosen."""
    if options.threads is not None:
        return options
    device = None if target.device is None else Path(target.device).name
    return chosen(options, wanted_threads(schedule, options.depth_limit), topology(Machine(), device))


def wanted_threads(schedule: Path, depth_limit: int) -> int:
    """Return the threads that a schedule needs: by its highest rate, or without deadlines by its depth."""
    records = open_schedule(schedule).records[::_BURST]
    if not len(records):
        return 1
    if records["deadline_ns"][-1]:
        shortest_ns = int(np.diff(records["deadline_ns"]).min(initial=2**62))
        return ceil(_BURST * 1e9 / max(shortest_ns, 1) / THREAD_IOPS)
    depth = int(records["depth"].max()) or depth_limit
    return ceil(min(depth, depth_limit) / THREAD_DEPTH)


def chosen(options: EngineOptions, wanted: int, seen: Topology) -> EngineOptions:
    """Return the options for the wanted threads on these CPUs: one CPU stays free, unless it is the only one."""
    threads = max(1, min(wanted, len(seen.cpus) - 1, MOST_THREADS))
    return replace(options, threads=threads, cpus=placement_on(seen).cpus(threads))


def possible() -> str | None:
    """Return why io_uring cannot be used here, or None."""
    done = programs.run([str(built_engine_path()), "--possible"])
    return None if done.returncode == 0 else _words(done.stderr)


def command(
    target_path: str,
    identity: str,
    schedule: Path,
    results: Path,
    options: EngineOptions,
) -> list[str]:
    """Return the engine's command line; `identity` is the approved target's, see target.h."""
    argv = [str(built_engine_path()), "--schedule", str(schedule), "--results", str(results),
            "--depth", str(options.depth_limit), "--watchdog-s", f"{options.watchdog_s:g}",
            "--target", target_path, "--identity", identity]  # fmt: skip
    flags = {"--go-on": options.go_on, "--polled": options.polled, "--kernel-thread": options.kernel_thread}
    argv += [flag for flag, wanted in flags.items() if wanted]
    argv += ["--nvme", nvme_node(target_path)] if options.nvme else []
    for option, value in (
        ("--threads", options.threads),
        ("--cpus", ",".join(map(str, options.cpus)) or None),
        ("--realtime", options.realtime_priority),
        ("--seed", options.seed),
        ("--runtime-s", options.runtime_s),
    ):
        argv += [] if value is None else [option, str(value)]
    return argv


def nvme_node(target_path: str) -> str:
    """Return the character device of an NVMe namespace's block device; raises UserError for another target.

    The engine verifies that both are the same namespace before it sends a command.
    """
    name = character_name(Path(target_path).resolve().name)
    if name is None:
        raise UserError(f"{target_path} is not a whole NVMe namespace, which NVMe passthrough needs; replay without it")
    return f"/dev/{name}"


def require_polling(target_path: str) -> None:
    """Raise UserError if a target's driver has no queues to poll."""
    if not Path(target_path).is_block_device() or not sysfs.has_poll_queues(sysfs.kernel_name(target_path)):
        raise UserError(
            f"{target_path} cannot be polled: its driver has no queues for that. For NVMe drives, boot with "
            "nvme.poll_queues=N, or replay without --polled"
        )


def run_engine(
    target_path: str,
    identity: str,
    schedule: Path,
    directory: Path,
    options: EngineOptions,
    *,
    on_tick: Tick = lambda elapsed_s: None,
    on_hang: Callable[[], None] = lambda: None,
) -> Timing:
    """Replay a schedule and write results and messages to `directory`.

    The files are results.bin, command.json, stdout, stderr and exit_code.

    `on_tick` is called about once a second with the seconds since the start. Once the replay began, this returns
    normally; `engine_report` says how the replay ended, even if the engine was killed. An engine that is silent for
    GRACE_S longer than its watchdog, or does not exit in time, is killed; `on_hang` is called if the kill fails.
    Raises CellFailed with the engine's message when it refused to begin, UserError when the schedule is invalid,
    OSError without space for the results.
    """
    if can_crash(polled=options.polled, nvme=options.nvme):
        raise UserError(
            "polling for NVMe commands can crash this kernel; use Linux 6.5 or newer, or replay without --polled or "
            "without --nvme. Nothing was written"
        )
    if options.polled:
        require_polling(target_path)
    results = directory / RESULTS
    header = open_schedule(schedule).header
    make_results(results, header["count"], header["checksum"])
    argv = command(target_path, identity, schedule.absolute(), results.absolute(), options)
    # The recording may be published: paths from its folder, without the user's home.
    names = {str(path): os.path.relpath(path, directory) for path in (schedule.absolute(), results.absolute())}
    recorded = [Path(argv[0]).name, *(names.get(word, word) for word in argv[1:])]
    (directory / "command.json").write_text(json.dumps(recorded))
    watchdog = _Watchdog(results, options.watchdog_s)

    def tick(elapsed_s: float) -> None:
        watchdog.look(elapsed_s)
        on_tick(elapsed_s)

    started_s = time.monotonic()
    try:
        timing = run_program(argv, directory, tick, on_hang, options.watchdog_s + _EXIT_S)
    except (_NoSignOfLife, CellFailed) as failure:  # CellFailed: it cannot be killed
        if open_results(results).header["state"] == PREPARED:
            raise CellFailed(str(failure)) from None
        (directory / "exit_code").write_text("-9\n")
        return Timing(started_s, time.monotonic())
    if open_results(results).header["state"] == PREPARED:
        status = int((directory / "exit_code").read_text())
        message = _words((directory / "stderr").read_text(errors="replace"))
        raise CellFailed(message if status > 0 else f"the replay engine was killed by signal {-status} before it began")
    return timing


def engine_report(directory: Path) -> dict[str, Any]:
    """Return a summary of the results in `directory`, JSON-able.

    `state` is one of `records.STATES`; "running" means the engine was killed. Raises UserError without results.
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
        "threads": header["threads"],
        "watching_threads": header["watching"],
        "polled": bool(header["polled"]),
        "kernel_thread": bool(header["kernel_thread"]),
        "nvme": bool(header["nvme"]),
        "buffers": "plain" if header["plain_buffers"] else "registered",
    }


def _words(stderr: str) -> str:
    """Return the engine's message: the last line it printed."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    return lines[-1].removeprefix("drivelab-replay: ") if lines else "the replay engine ended without a message"


class _NoSignOfLife(Exception):  # noqa: N818 (an event, as StopIteration is)
    """The engine must be killed."""


class _Watchdog:
    """Backs up the engine's own watchdog, which cannot run in uninterruptible sleep."""

    def __init__(self, results: Path, watchdog_s: float) -> None:
        self._path, self._watchdog_s = results, watchdog_s
        self._last: tuple[int, ...] = ()
        self._alive_s = 0.0

    def look(self, elapsed_s: float) -> None:
        """Raise _NoSignOfLife when the engine must be killed."""
        header = open_results(self._path).header
        signs = (header["state"], header["heartbeat_ns"], header["completed"])
        if signs != self._last:
            self._last, self._alive_s = signs, elapsed_s
        patience_s = _EXIT_S if header["state"] > RUNNING else self._watchdog_s + GRACE_S
        if elapsed_s - self._alive_s > patience_s:
            raise _NoSignOfLife(f"the replay engine gave no sign of life for {patience_s:.0f} s; it was killed")
