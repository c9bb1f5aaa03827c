"""The hidden name that an archive has until it is complete and on disk."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from drivelab.errors import UserError


@contextmanager
def named(output: Path) -> Iterator[None]:
    """Say what could not be written: a full disk does not."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        words = f"{output}: cannot be written: {error.strerror}; nothing of it is kept, make room and begin again"
        raise UserError(words) from None


@contextmanager
def whole_file(output: Path) -> Iterator[BinaryIO]:
    """Open a new file that gets the name `output` when it is complete and on disk.

    Raises UserError when another process writes it, or its hidden name belongs to something else.
    """
    part = _part_of(output)
    with named(output), _own(part, os.O_RDWR | os.O_CREAT, stat.S_ISREG) as descriptor:
        os.ftruncate(descriptor, 0)
        with open(descriptor, "r+b", closefd=False) as file:
            try:
                yield file
                file.flush()
                os.fsync(descriptor)
                part.rename(output)
            except BaseException:
                part.unlink(missing_ok=True)
                raise


@contextmanager
def whole_folder(output: Path) -> Iterator[Path]:
    """Make a new folder that gets the name `output` when it is complete; raises UserError as `whole_file`."""
    part = _part_of(output)
    with named(part):
        part.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(part):
            part.mkdir()
        with _own(part, os.O_RDONLY | os.O_DIRECTORY, stat.S_ISDIR):
            for entry in part.iterdir():
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
            try:
                yield part
                part.rename(output)
            finally:
                shutil.rmtree(part, ignore_errors=True)


def _part_of(output: Path) -> Path:
    """A name that nobody else gives a file, so that what a killed process left can be taken up."""
    return output.with_name(f".{output.name}.drivelab-part")


@contextmanager
def _own(part: Path, flags: int, is_kind: Callable[[int], bool]) -> Iterator[int]:
    """Open what has the hidden name and lock it: new, or left by a process of this user that was killed."""
    try:
        descriptor = os.open(part, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    except OSError:
        if os.path.lexists(part):
            raise _in_the_way(part) from None
        raise
    try:
        _lock(part, descriptor, is_kind)
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(part: Path, descriptor: int, is_kind: Callable[[int], bool]) -> None:
    about = os.fstat(descriptor)
    linked = stat.S_ISREG(about.st_mode) and about.st_nlink != 1
    if not is_kind(about.st_mode) or about.st_uid != os.geteuid() or linked:
        raise _in_the_way(part)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.lstat(part), about):
            raise _in_the_way(part)
    except OSError:
        raise _in_the_way(part) from None


def _in_the_way(part: Path) -> UserError:
    return UserError(
        f"{part}: is there already. Another process is writing this archive, or the file is not drivelab's. Wait for "
        "that process, remove it, or name another output."
    )
