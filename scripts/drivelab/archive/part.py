"""Write an archive under a hidden name until it is complete and on disk."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from drivelab.core.errors import UserError


@contextmanager
def named(output: Path) -> Iterator[None]:
    """Name the output in errors that carry no file name, such as a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise UserError(
            f"{output}: cannot be written: {error.strerror}; the partial output is removed, free some space and start "
            "again"
        ) from None


@contextmanager
def whole_file(output: Path) -> Iterator[BinaryIO]:
    """Open a new file that gets the name `output` when it is complete and on disk.

    Raises UserError if another process writes it, or if another file has its hidden name.
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
    """Return a hidden name unique to drivelab, so that the rest of a killed process can be reused."""
    return output.with_name(f".{output.name}.drivelab-part")


@contextmanager
def _own(part: Path, flags: int, is_kind: Callable[[int], bool]) -> Iterator[int]:
    """Open and lock the hidden name: a new file, or the rest of this user's killed process."""
    try:
        descriptor = os.open(part, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    except OSError:
        if os.path.lexists(part):
            raise _occupied(part) from None
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
        raise _occupied(part)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.lstat(part), about):
            raise _occupied(part)
    except OSError:
        raise _occupied(part) from None


def _occupied(part: Path) -> UserError:
    return UserError(
        f"{part}: exists already. Another process writes this archive, or the file is not drivelab's. Wait for that "
        "process, remove the file, or name another output."
    )
