"""Watch whether tests read or write the project's own folders (inotify(7)).

These hold a user's results, settings and sheets. Processes that a test starts are watched too.
"""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

RESULTS = ("results", ".snakemake")
"""Folders of users' studies, in which tests must not open files."""
SOURCES = ("config", "traces", "workflow", "profiles", "docs")
"""Folders that tests may read."""
_OPEN, _CLOSE_WRITE = 0x20, 0x8
_MOVED, _CREATE, _DELETE, _MODIFY = 0xC0, 0x100, 0x200, 0x2
_OVERFLOW, _IGNORED, _FOLDER = 0x4000, 0x8000, 0x40000000
_WRITES = _MODIFY | _CLOSE_WRITE | _MOVED | _CREATE | _DELETE
_EVENT = struct.Struct("iIII")
_libc = ctypes.CDLL(None, use_errno=True)


class FolderWatch:
    """Collects events below a project's folders; raises OSError if the kernel refuses a watch."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._paths: dict[int, Path] = {}
        self._descriptor = _checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._watch(root, _MOVED | _CREATE | _DELETE)
        for name in SOURCES:
            self._watch_tree(root / name, _WRITES)
        for name in RESULTS:
            self._watch_tree(root / name, _WRITES | _OPEN)
        self.touched()  # discards the events of setting up the watches

    def close(self) -> None:
        os.close(self._descriptor)

    def touched(self) -> list[str]:
        """Return the files opened or changed since the last call: `PATH read` or `PATH written`, sorted."""
        events = set()
        while data := self._read():
            at = 0
            while at < len(data):
                number, mask, _, length = _EVENT.unpack_from(data, at)
                name = data[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0")
                at += _EVENT.size + length
                if mask & _OVERFLOW:
                    raise RuntimeError(
                        "the kernel lost events of the project's folders; increase fs.inotify.max_queued_events"
                    )
                # Python's plugin search lists all neighbouring folders (pkgutil.iter_modules), which reads no file.
                listed = mask & _FOLDER and not mask & _WRITES
                if mask & _IGNORED or listed:
                    continue
                if self._counts(path := self._paths[number] / os.fsdecode(name)):
                    events.add(f"{path.relative_to(self._root)} {'written' if mask & _WRITES else 'read'}")
        return sorted(events)

    def _counts(self, path: Path) -> bool:
        """Whether a path counts: not a tool's cache at the top level, such as a hidden folder, build or pytest's."""
        top = path.relative_to(self._root).parts[0]
        return top in RESULTS or not (top.startswith((".", "pytest-cache-files-")) or top == "build")

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, 1 << 16)
        except BlockingIOError:
            return b""

    def _watch_tree(self, folder: Path, mask: int) -> None:
        if folder.is_dir():
            for path, _, _ in os.walk(folder):
                self._watch(Path(path), mask)

    def _watch(self, folder: Path, mask: int) -> None:
        number = _checked(_libc.inotify_add_watch(self._descriptor, os.fsencode(folder), mask))
        self._paths[number] = folder


def _checked(status: int) -> int:
    if status < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return status
