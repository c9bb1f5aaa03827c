"""Who runs a study, and whether this user may."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from drivelab.core.errors import UserError
from drivelab.plan.hosts import this_host
from drivelab.recording.folders import RUN_LOCK
from drivelab.run.progress import HEARTBEAT_S, SILENT_S, process_start
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
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while not self._ending.wait(HEARTBEAT_S):
            with suppress(OSError):
                os.utime(self._file.fileno())

    def ended_in_order(self, *, began: bool = True) -> None:
        """Release the lock; a run that never began leaves the trace of an interrupted one."""
        self._ending.set()
        self._thread.join()
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


_FINISHED = "recording.json"
"""A folder with this file is a finished recording, which never changes."""


def require_writable(results: Path, records: Path = Path(".snakemake")) -> None:
    """Raise UserError for the first path in `results` or Snakemake's `records` that this user may not write to.

    Without this check Snakemake would fail in the middle of the study. Finished recordings are skipped.
    """
    if os.geteuid() == 0:  # root may write to all
        return
    for path in (*_touched(records, depth=1), *_touched(results)):
        if not os.access(path, os.W_OK):
            raise UserError(
                f"{path}: belongs to {_owner(path)}, and you may not write to it; let one user run the study, or give "
                "each user a separate project folder and 'results'"
            )


def _touched(folder: Path, depth: int | None = None) -> Iterator[Path]:
    """Yield the folder, or its first existing parent, and the paths in it that a run may write to, down to `depth`."""
    if not folder.is_dir():
        yield next(parent for parent in folder.absolute().parents if parent.is_dir())
        return
    yield folder
    with os.scandir(folder) as scan:
        entries = sorted(scan, key=lambda entry: entry.name)
    if any(entry.name == _FINISHED for entry in entries):
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _touched(Path(entry.path)) if depth is None else [Path(entry.path)]
        elif depth is None:
            yield Path(entry.path)


def _owner(path: Path) -> str:
    try:
        return f"user '{path.owner()}'"
    except KeyError:
        return f"user {path.stat().st_uid}"
