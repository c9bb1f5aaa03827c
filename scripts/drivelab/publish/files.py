"""The files of a site: written only if they differ, removed if the site no longer has them."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import drivelab
from drivelab.core.errors import UserError
from drivelab.core.files import read_regular
from drivelab.publish import FORMAT

INDEX = "index.json"
"""For other tools; also the mark of a site's folder."""
VERDICTS = "verdicts.json"
RECORD, REPORT = "study.json", "report.html"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_PAGE = re.compile(r"[a-z0-9-]+\.html")
_PART = ".drivelab-part"
_MOST_BYTES = 512 << 20


def encoded(data: Any) -> bytes:
    """Return data as JSON with sorted keys: equal data give equal bytes. Raises ValueError for NaN and infinity."""
    return (json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n").encode()


class Site:
    """A folder that holds a site, and nothing else."""

    def __init__(self, folder: Path) -> None:
        """Use a new or empty folder, or that of an earlier site; raises UserError for any other."""
        self.folder = folder
        if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
            raise UserError(f"{folder}: is not a folder. Name a new folder for the site.")
        if folder.is_dir() and any(folder.iterdir()) and not self._is_site():
            raise UserError(
                f"{folder}: is not empty, and holds no site of drivelab. Publishing would remove files. "
                "Name a new folder."
            )

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make the folder and keep other runs out of it; raises UserError if another run holds it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(
                    f"{self.folder}: another 'drivelab publish' writes this site. Run the command again when it ends."
                ) from None
            try:
                yield
            finally:
                if not any(self.folder.iterdir()):  # nothing was written, for an archive was refused
                    self.folder.rmdir()
        finally:
            os.close(descriptor)

    def _is_site(self) -> bool:
        started = self.folder / "studies"  # a first run may have been interrupted before it wrote the index
        try:
            if not (self.folder / INDEX).exists():
                return [path.name for path in self.folder.iterdir()] == [started.name] and started.is_dir()
            return bool(json.loads(read_regular(self.folder / INDEX, _MOST_BYTES))["generator"] == "drivelab publish")
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return False

    def has_study(self, digest: str) -> bool:
        """Return whether the record of an archive is there, written by this version of drivelab."""
        record = self.record(digest)
        return record.get("format") == FORMAT and record.get("drivelab") == drivelab.__version__

    def record(self, digest: str) -> dict[str, Any]:
        """Return the record of an archive; empty if there is none."""
        try:
            record = json.loads(read_regular(self.folder / f"studies/{digest}" / RECORD, _MOST_BYTES))
        except (OSError, ValueError, RecursionError):
            return {}
        return record if isinstance(record, dict) else {}

    def write_study(self, record: dict[str, Any], report: str) -> None:
        """Write the folder of a study; its record comes last, so that an interrupted one is written again."""
        folder = f"studies/{record['archive']['sha256']}"
        shutil.rmtree(self.folder / folder, ignore_errors=True)
        if report:
            self.write(f"{folder}/{REPORT}", report.encode())
        self.write(f"{folder}/{RECORD}", encoded(record))

    def verdicts(self) -> dict[str, list[list[Any]]]:
        """Return the verdicts of an earlier run by this version of drivelab, by pair."""
        try:
            body = json.loads(read_regular(self.folder / VERDICTS, _MOST_BYTES))
            same = body["format"] == FORMAT and body["drivelab"] == drivelab.__version__
            return dict(body["pairs"]) if same else {}
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return {}

    def write_verdicts(self, pairs: dict[str, list[list[Any]]]) -> None:
        """Keep the verdicts for the next run."""
        self.write(VERDICTS, encoded({"format": FORMAT, "drivelab": drivelab.__version__, "pairs": pairs}))

    def write(self, name: str, data: bytes | Iterable[bytes]) -> None:
        """Write a file atomically; an equal one keeps its time, so that copying tools skip it."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}{_PART}")
        try:
            with part.open("wb") as file:
                file.writelines([data] if isinstance(data, bytes) else data)
            if path.is_file() and _equal(path, part):
                return
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def remove_others(self, digests: set[str], pages: set[str]) -> int:
        """Remove studies and pages that are no longer part of the site; return the number of studies."""
        removed = 0
        for path in _entries(self.folder / "studies"):
            if _DIGEST.fullmatch(path.name) and path.name not in digests:
                shutil.rmtree(path)
                removed += 1
        for path in _entries(self.folder / "models"):
            if _PAGE.fullmatch(path.name) and path.name not in pages:
                path.unlink()
        return removed


def _entries(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from sorted(folder.iterdir())


def _equal(path: Path, other: Path) -> bool:
    if path.stat().st_size != other.stat().st_size:
        return False
    with path.open("rb") as one, other.open("rb") as two:
        while chunk := one.read(1 << 20):
            if chunk != two.read(1 << 20):
                return False
    return True
