"""The lock of a study's results folder: one process runs a study at a time."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from drivelab.core.errors import UserError
from drivelab.core.heartbeat import SILENT_S, Heartbeat
from drivelab.plan.hosts import this_host
from drivelab.recording.folders import RUN_LOCK
from drivelab.run.progress import process_start
from drivelab.trace.capturing.capture_report import boot_id


class RunLock:
    """The lock of a study's results folder, held until the process ends: one process runs a study at a time.

    The time of the lock's file is the run's last sign of life.
    """

    def __init__(self, file: TextIO, last: str) -> None:
        self._file, self._last, self._last_s = file, last, os.fstat(file.fileno()).st_mtime
        self.interrupted = bool(last)
        """Whether the last run did not end in order."""
        file.truncate(0)
        who = f"process {os.getpid()} on {this_host()}, since {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
        file.write(f"{who}\n{_process(os.getpid())}")
        file.flush()
        self._heartbeat = Heartbeat(lambda: os.utime(file.fileno()))
        self._heartbeat.start()

    def ended_in_order(self, *, began: bool = True) -> None:
        """Release the lock; a run that never began leaves the trace of an interrupted one."""
        self._heartbeat.end()
        self._file.truncate(0)
        if not began:
            self._file.write(self._last)
            self._file.flush()
            os.utime(self._file.fileno(), (self._last_s, self._last_s))
        self._file.close()


def hold(results: Path, study: str) -> RunLock | None:
    """Lock a results folder, and write into the lock's file who runs the study.

    Return None if the process that started this one holds the lock, as `drivelab run` does for its Snakemake. Raises
    UserError if another process holds it, or may hold it: some shared file systems lock files for each host alone.
    """
    results.mkdir(parents=True, exist_ok=True)
    path = results / RUN_LOCK
    file = path.open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_free = True
    except BlockingIOError:
        is_free = False
    file.seek(0)
    last = file.read()
    who, _, process = last.partition("\n")
    silent_s = time.time() - os.fstat(file.fileno()).st_mtime
    if is_free and not (_is_elsewhere(process) and silent_s < SILENT_S):
        return RunLock(file, last)
    file.close()
    if is_free:
        raise UserError(
            f"study '{study}' is being run by {who}, which wrote to {path} {max(silent_s, 0):.0f} s ago; wait for it "
            f"or stop it there. If that host is down, run again in {SILENT_S:.0f} s."
        )
    with suppress(OSError):  # the parent may be outside this container
        if process == _process(os.getppid()):
            return None
    by = f" by {who}" if who else ""
    raise UserError(f"study '{study}' is being run or archived{by}, which holds {path}; wait for it or stop it")


def _process(pid: int) -> str:
    """Return what identifies a process, as process IDs recur: host, boot, number, start and PID namespace."""
    return f"{this_host()} {boot_id()} {pid} {process_start(pid)}"


def _is_elsewhere(process: str) -> bool:
    """Return whether a process is of another host, so that this kernel may not know of its lock."""
    host, _, rest = process.partition(" ")
    return bool(rest) and host != this_host() and not rest.startswith(boot_id())
