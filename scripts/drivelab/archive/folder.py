"""Write files below a folder by descriptors, without following links or overwriting files."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Folder:
    """Writes files below a folder, safe against other processes that change it meanwhile."""

    def __init__(self, path: Path) -> None:
        self._top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._current: tuple[str, int] = ("", self._top)
        """The folder of the last file and its descriptor: most files follow in the same folder."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._leave()
        os.close(self._top)

    def write(self, name: str, chunks: Iterable[bytes], mtime_s: int | None) -> None:
        """Write a new file, readable by all users and not executable, which gets its name when complete.

        `name` is a plain relative path, `mtime_s` the file's time in seconds since 1970. Raises OSError, also if the
        name exists, and what `chunks` raises; then the file is removed.
        """
        place, _, last = name.rpartition("/")
        folder = self._enter(place)
        part = f".{last[:200]}.{os.getpid()}.part"
        descriptor = os.open(part, _NEW, 0o644, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                for chunk in chunks:
                    file.write(chunk)
                file.flush()
                if mtime_s is not None:
                    os.utime(descriptor, (mtime_s, mtime_s))
            _refuse_existing(last, folder)
            os.rename(part, last, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(part, dir_fd=folder)
            raise

    def _enter(self, place: str) -> int:
        if place == self._current[0]:
            return self._current[1]
        self._leave()
        descriptor = os.dup(self._top)
        for name in filter(None, place.split("/")):
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=descriptor)
            above = descriptor
            try:
                descriptor = os.open(name, _FOLDER, dir_fd=above)
            finally:
                os.close(above)
        self._current = (place, descriptor)
        return descriptor

    def _leave(self) -> None:
        if self._current[1] != self._top:
            os.close(self._current[1])
        self._current = ("", self._top)


def _refuse_existing(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.stat(name, dir_fd=folder, follow_symlinks=False)
        raise FileExistsError(errno.EEXIST, "the name exists now", name)
