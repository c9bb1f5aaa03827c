"""Check that the user may write to a study's results, which another user may have made."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

from drivelab.errors import UserError

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
