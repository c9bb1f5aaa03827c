"""The work folder of a replay outside of a study, and what a killed replay left in it."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from drivelab.core.errors import UserError
from drivelab.replay import native
from drivelab.replay.engine_records import open_results, open_schedule
from drivelab.replay.outcome import write_outcome
from drivelab.trace.records import writable

PLAN = "trace"
"""Stem of the schedule and of the planned requests."""
_LOCK = "replay.lock"
_MARK = b"work folder of drivelab replay; it is emptied and removed\n"
"""Content of the lock file. A file of that name with other content is not drivelab's."""
_REMEDY = "It was not changed. Move it, or give -o another name."


@contextmanager
def folder_of(output: Path) -> Iterator[Path]:
    """Make an empty work folder `.NAME.replay` beside `output`, hold it for the block, then remove it.

    The completed part of an earlier replay that was killed is kept as `STEM.interrupted-N.parquet`. Only a folder with
    drivelab's mark is emptied, through its descriptor, and no link is followed.

    Raises UserError when another replay holds the folder, and when something else has its name.
    """
    folder = output.with_name(f".{output.name}.replay")
    with writable(output):
        parent = os.open(output.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            held = _open(parent, folder)
        except BaseException:
            os.close(parent)
            raise
    try:
        lock = _lock(held, folder, output)
        try:
            _save(folder, output)
            _empty(held)
            try:
                yield folder
            finally:
                _empty(held)
                with suppress(OSError):  # the folder was moved, or has new content
                    os.unlink(_LOCK, dir_fd=held)  # last: without its mark, drivelab would refuse the folder
                    os.rmdir(folder.name, dir_fd=parent)
        finally:
            os.close(lock)
    finally:
        os.close(held)
        os.close(parent)


def _open(parent: int, folder: Path) -> int:
    """Open the folder, or make it; raises UserError for a link, a file or another user's folder."""
    with suppress(FileExistsError):
        os.mkdir(folder.name, 0o700, dir_fd=parent)
    try:
        held = os.open(folder.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except NotADirectoryError:  # also for a link
        raise UserError(f"{folder}: is a link or a file, where drivelab needs a work folder. {_REMEDY}") from None
    if os.fstat(held).st_uid != os.geteuid():
        os.close(held)
        raise UserError(f"{folder}: belongs to another user. {_REMEDY}")
    return held


def _lock(held: int, folder: Path, output: Path) -> int:
    """Open, mark and lock the folder's lock file; raises UserError as in `folder_of`."""
    foreign = UserError(f"{folder}: is not a work folder of drivelab replay. {_REMEDY}")
    empty = set(os.listdir(held)) <= {_LOCK}
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | (os.O_CREAT if empty else 0)
    try:
        lock = os.open(_LOCK, flags, 0o600, dir_fd=held)
    except OSError:  # missing among other files, or a link or a folder
        raise foreign from None
    try:
        status = os.fstat(lock)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            raise foreign
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{output}: another replay is writing it; wait for it, or give -o another name") from None
        content = os.pread(lock, len(_MARK) + 1, 0)
        if empty and _MARK.startswith(content):  # new, or its process was killed during the write
            os.pwrite(lock, _MARK, 0)
        elif content != _MARK:
            raise foreign
    except BaseException:
        os.close(lock)
        raise
    return lock


def _empty(held: int) -> None:
    """Remove everything but the lock file; a link is removed, not followed."""
    for name in os.listdir(held):
        if name == _LOCK:
            continue
        if stat.S_ISDIR(os.stat(name, dir_fd=held, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=held)
        else:
            os.unlink(name, dir_fd=held)


def _save(folder: Path, output: Path) -> None:
    schedule, planned = folder / f"{PLAN}.schedule", folder / f"{PLAN}.planned.parquet"
    results = folder / native.RESULTS
    if not (schedule.exists() and planned.exists() and results.exists()):
        return
    try:
        if open_results(results).header["schedule_checksum"] != open_schedule(schedule).header["checksum"]:
            return
        if native.engine_report(folder)["state"] == "prepared":
            return
        kept = _free_name(output)
        write_outcome(planned, results, kept, {"engine": "native"})
    except UserError as error:
        _say(f"an earlier replay was interrupted, but its results are unusable: {error}")
    else:
        _say(f"an earlier replay was interrupted; its completed part is in {kept}")


def _say(text: str) -> None:
    """Print a message beside the report, which may be JSON."""
    print(f"drivelab: {text}", file=sys.stderr)


def _free_name(output: Path) -> Path:
    number = 1
    while os.path.lexists(kept := output.with_name(f"{output.stem}.interrupted-{number}{output.suffix}")):
        number += 1
    return kept
