"""Follow files to which other processes append lines."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from drivelab.core.files import open_regular

_MOST_BYTES = 4 << 20
"""Bytes per read; the next read gets the rest."""


class Follower:
    """Reads the lines appended to a file since the last read.

    Only complete lines count. The file may be missing, may move with its folder (its inode identifies it), or may be
    replaced by another file, which is then read from its beginning.
    """

    def __init__(self, tail_bytes: int | None = None) -> None:
        """Start; of an existing file, only complete lines in the last `tail_bytes` are read."""
        self._tail_bytes = tail_bytes
        self._inode = -1
        self._offset = 0
        self.replaced = False
        """Whether the last read found another file, and started at its beginning."""

    def read(self, path: Path) -> list[str]:
        """Return new complete lines, without their ends; none if the file cannot be read now."""
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
        if not whole and len(data) == _MOST_BYTES:  # drivelab writes no line of this length
            self._offset += len(data)
        lines = whole.decode(errors="replace").splitlines()
        return lines[1:] if is_cut else lines

    def objects(self, path: Path) -> list[dict[str, Any]]:
        """Return new lines as JSON objects; other lines are skipped."""
        parsed = (_object(line) for line in self.read(path))
        return [value for value in parsed if value is not None]

    def _place(self, status: os.stat_result) -> bool:
        """Set the offset of the next read; return whether it may be in the middle of a line."""
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
