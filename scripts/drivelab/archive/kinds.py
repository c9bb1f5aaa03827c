"""Decide by name which files of an archive are restored: only kinds of files that a study has."""

from __future__ import annotations

import errno
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from drivelab.archive.contents import ELSEWHERE
from drivelab.run.consent import CONSENT

_CONFIGURATION = re.compile(
    r"config/[^/]+\.(yaml|yml|tsv)|config/protocols/[^/]+\.yaml|traces/(.+/)?[^/]+\.(yaml|parquet)"
)
"""Study, applications, drive models, drive sheet; protocols; traces and their catalogue."""
_ELSEWHERE = re.compile(rf"{ELSEWHERE}/.+\.(yaml|yml|tsv|parquet)")
"""The same, from outside the project's folder."""
_RESULTS = re.compile(
    r"results/([^/]+/)*("
    r"(recordings|seals|virtual|logs|traces)/.+"
    r"|study\.txt|looks\.json"
    r")"
)
_COMPUTED = ("tables", "dataset", "figures", "report", "facts")
_FOLDERS = (*_COMPUTED, "recordings", "seals", "virtual", "logs", "traces")
_DATA = re.compile(
    r"[^.]+|.+\.(json|jsonl|log|txt|csv|fio|iolog|parquet|bin|schedule|state|before|user|flash|svg|png|pdf|html|md)"
)
"""Names of files in results: data, and names without a suffix, such as stdout and SHA256SUMS."""
_HOST_STATE = re.compile(rf"results/([^/]+/)*({CONSENT}|\.run\.lock|concurrency\.json|(plans|status|virtual)/.+)")
"""State of the host at the time, not of the study. It is left out silently."""


def is_computed(name: str) -> bool:
    """Whether a name is that of a table, figure or report, which this drivelab computes again from the recordings.

    Those of an archive are somebody else's word: they may have any number, and no checksum ties them to a recording.
    """
    parts = name.split("/")
    first = next((folder for folder in parts[1:-1] if folder in _FOLDERS), None)
    return parts[0] == "results" and first in _COMPUTED


def is_kept(name: str) -> bool:
    """Whether a name in an archive is of a kind to restore."""
    parts = name.split("/")
    if any(part.startswith(".") for part in parts) or is_computed(name):
        return False
    if _RESULTS.fullmatch(name):
        return bool(_DATA.fullmatch(parts[-1])) and parts[-1] != CONSENT
    return bool(_CONFIGURATION.fullmatch(name) or _ELSEWHERE.fullmatch(name))


def is_host_state(name: str) -> bool:
    """Whether a name that is not restored is normal for a study."""
    return bool(_HOST_STATE.fullmatch(name)) or name.startswith(".snakemake/metadata/")  # archives of drivelab 0.1


def clashing(names: Collection[str]) -> list[str]:
    """Return, sorted, names that some file systems treat as equal, and files that others need as folders."""
    alike: dict[str, set[str]] = defaultdict(set)
    for name in names:
        alike[_folded(name)].add(name)
    parents = (str(folder) for folded in alike for folder in PurePosixPath(folded).parents)
    folders = {folder for folder in parents if folder in alike}  # not all folders: there may be millions
    return sorted(
        name for folded, originals in alike.items() if len(originals) > 1 or folded in folders for name in originals
    )


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Folder:
    """Writes files below a folder, safe against other processes that change it meanwhile."""

    def __init__(self, path: Path) -> None:
        self._top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._current: tuple[str, int] = ("", self._top)
        """The folder of the last file and its descriptor: most files follow in the same folder."""

    def close(self) -> None:
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
