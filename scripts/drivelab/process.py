"""Run a program that does I/O on a drive, and end its whole process group if needed."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from drivelab import parent
from drivelab.fio.document import CellFailed

TICK_S = 1.0
"""Seconds between two checks of a running program."""
_KILL_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class Timing:
    """Start and end of a process, seconds of the monotonic clock."""

    started_s: float
    ended_s: float


Tick = Callable[[float], None]
Runner = Callable[[Sequence[str], Path, Tick, Callable[[], None], float], Timing]
"""Type of `run_program`, and of functions that wrap it."""


def run_program(
    command: Sequence[str],
    directory: Path,
    on_tick: Tick,
    on_hang: Callable[[], None] = lambda: None,
    patience_s: float = 0.0,
    *,
    inherited: Sequence[int] = (),
    until: Callable[[], bool] | None = None,
    look_s: float = TICK_S,
) -> Timing:
    """Run a program in `directory`, with its results in the files `stdout`, `stderr` and `exit_code` there.

    `on_tick` is called about once a second with the seconds since the start. An exception from it ends the process
    group and propagates. `until` is called every `look_s` seconds; when it returns True, the program gets SIGINT, to
    end cleanly. `on_hang` is called if the program survives SIGKILL: a process in uninterruptible sleep ends only when
    the drive answers. On KeyboardInterrupt the program gets SIGINT too, and `patience_s` seconds to end cleanly. The
    program inherits the descriptors `inherited`. The exit status is not checked here. If this process is killed, the
    program is killed too.
    """
    with (directory / "stdout").open("wb") as out, (directory / "stderr").open("wb") as err:
        started_s = time.monotonic()
        process = parent.start(command, cwd=directory, stdout=out, stderr=err, process_group=0, pass_fds=inherited)
        try:
            ended_s = _wait(process, started_s, on_tick, until, min(look_s, TICK_S))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and patience_s:
                _interrupt(process, patience_s)
            _kill_group(process, Path(command[0]).name, on_hang)
            raise
    (directory / "exit_code").write_text(f"{process.returncode}\n")
    return Timing(started_s, ended_s)


def _wait(
    process: subprocess.Popen[bytes],
    started_s: float,
    on_tick: Tick,
    until: Callable[[], bool] | None,
    look_s: float,
) -> float:
    """Wait on a pidfd: Popen.wait polls with a delay of up to 50 ms, which would be a gap between cells."""
    descriptor = os.pidfd_open(process.pid)
    looks_a_tick = max(round(TICK_S / look_s), 1)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        looks = 0
        while not poll.poll(1000 * look_s):
            looks += 1
            if until is not None and until():
                until = None
                os.killpg(process.pid, signal.SIGINT)  # not reaped yet, so its group exists
            if looks % looks_a_tick == 0:
                on_tick(time.monotonic() - started_s)
        ended_s = time.monotonic()
        process.wait()
        return ended_s
    finally:
        os.close(descriptor)


def _interrupt(process: subprocess.Popen[bytes], patience_s: float) -> None:
    """Interrupt the group and wait; a second KeyboardInterrupt propagates, and its handler kills the group."""
    with suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGINT)
        process.wait(timeout=patience_s)


def _kill_group(process: subprocess.Popen[bytes], name: str, on_hang: Callable[[], None]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    for last_resort in (on_hang, None):
        try:
            process.wait(timeout=_KILL_TIMEOUT_S)
            return
        except subprocess.TimeoutExpired:
            if last_resort is not None:
                last_resort()
    raise CellFailed(f"{name} (process {process.pid}) cannot be killed while the drive hangs")
