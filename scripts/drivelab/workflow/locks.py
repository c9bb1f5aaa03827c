"""Who runs a study, and whether this user may."""

from __future__ import annotations

import fcntl
import os
import pwd
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from drivelab.core.errors import UserError
from drivelab.plan.hosts import this_host
from drivelab.recording.folders import RUN_LOCK


class RunLock:
    """The lock of a study's results folder, held until the process ends: one process runs a study at a time."""

    def __init__(self, file: TextIO, last: str) -> None:
        self._file, self._last = file, last
        self.interrupted = bool(last)
        """Whether the last run did not end in order."""

    def ended_in_order(self, *, began: bool = True) -> None:
        """Release the lock; a run that never began leaves the trace of an interrupted one."""
        self._file.truncate(0)
        self._file.write("" if began else self._last)
        self._file.close()


def hold(results: Path, study: str) -> RunLock | None:
    """Lock a results folder, and write into the lock's file who runs the study.

    Return None if the process that started this one holds the lock, as `drivelab run` does for its Snakemake. Raises
    UserError if another process holds it.
    """
    results.mkdir(parents=True, exist_ok=True)
    file = (results / RUN_LOCK).open("a+", encoding="utf-8")
    file.seek(0)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = file.read()
        file.close()
        if holder == _holder(os.getppid(), holder.rpartition(", since ")[2]):
            return None
        who = f" by {holder}" if holder else ""
        raise UserError(
            f"study '{study}' is being run or archived{who}, which holds {results / RUN_LOCK}; wait for it or stop it"
        ) from None
    last = file.read()
    file.truncate(0)
    file.write(_holder(os.getpid(), f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"))
    file.flush()
    return RunLock(file, last)


def _holder(pid: int, since: str) -> str:
    return f"process {pid} on {this_host()}, since {since}"


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
    uid = path.stat().st_uid
    try:
        return f"user '{pwd.getpwuid(uid).pw_name}'"
    except KeyError:
        return f"user {uid}"
