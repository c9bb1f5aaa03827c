"""Run the traced command."""

from __future__ import annotations

import os
import resource
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from drivelab.core import programs
from drivelab.core.termination import deferred
from drivelab.trace.capturing.capture_report import MARK, Outcome, end_session


def run(
    command: Sequence[str],
    cwd: Path | None,
    output: Path,
    poll: Callable[[], None],
    interval_s: float,
    begun: Callable[[int], None],
    environment: Mapping[str, str] | None = None,
) -> Outcome:
    """Run a command with stdout and stderr in `output`.

    `begun` gets its PID; `poll` is called every `interval_s`. All processes of the command's session, and all with the
    mark of `environment`, are killed at the end.
    """
    with (output / "stdout").open("wb") as out, (output / "stderr").open("wb") as err:
        started_s = time.monotonic()
        process = None
        try:
            with deferred():  # a signal between fork and return would lose the process
                process = programs.start(
                    command, cwd=cwd, stdout=out, stderr=err, start_new_session=True, env=environment
                )
            begun(process.pid)
            _wait(process.pid, poll, interval_s)
            ended_s = time.monotonic()
        finally:
            if process is not None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                end_session(process.pid, (environment or {}).get(MARK))
    # The child's maximum includes the parent's memory between fork and exec (setmax_mm_hiwater_rss).
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rss_bytes = used.ru_maxrss * 1024 if used.ru_maxrss > own else None
    return Outcome(process.returncode, ended_s - started_s, used.ru_utime, used.ru_stime, rss_bytes)


def _wait(pid: int, poll: Callable[[], None], interval_s: float) -> None:
    """Wait for the end of a child without reaping it."""
    descriptor = os.pidfd_open(pid)
    try:
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        while not waiting.poll(interval_s * 1000):
            poll()
    finally:
        os.close(descriptor)
