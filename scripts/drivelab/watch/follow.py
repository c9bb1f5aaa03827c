"""Files that others append lines to, while they are read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from drivelab.files import open_regular

_MOST_BYTES = 4 << 20
"""Of one reading; the rest is the next one's."""


class Follower:
    """What has been appended to a file since it was last read, line by line.

    A line counts when it has its end. The file may be missing, be moved together with its folder (it is known by its
    inode), or be replaced by another, which is read from its beginning.
    """

    def __init__(self, tail_bytes: int | None = None) -> None:
        """Of a file that is there already only the last `tail_bytes` are read, from the first whole line in them."""
        self._tail_bytes = tail_bytes
        self._inode = -1
        self._offset = 0
        self.replaced = False
        """Whether the last reading began anew, as the file is not the one of the reading before."""

    def read(self, path: Path) -> list[str]:
        """New whole lines, without their ends; none where the file cannot be read now."""
        self.replaced = False
        try:
            with open_regular(path) as file:
                is_cut = self._place(os.fstat(file.fileno()))
                file.seek(self._offset)
                data = file.read(_MOST_BYTES)
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        if not whole and len(data) == _MOST_BYTES:  # one line of this length is none of ours
            self._offset += len(data)
        lines = whole.decode(errors="replace").splitlines()
        return lines[1:] if is_cut else lines

    def objects(self, path: Path) -> list[dict[str, Any]]:
        """New lines as JSON objects; what is none says nothing."""
        found = (_object(line) for line in self.read(path))
        return [one for one in found if one is not None]

    def _place(self, status: os.stat_result) -> bool:
        """Where to go on; returns whether that may be in the middle of a line."""
        first = self._inode == -1
        if status.st_ino == self._inode and status.st_size >= self._offset:
            return False
        self.replaced = not first
        self._inode, self._offset = status.st_ino, 0
        if self._tail_bytes is None or status.st_size <= self._tail_bytes:
            return False
        self._offset = status.st_size - self._tail_bytes
        return True


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
