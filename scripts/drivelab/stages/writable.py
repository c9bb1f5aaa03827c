"""Whether the one who runs a study may write to its results, which another user may have made."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

from drivelab.errors import UserError

_FINISHED = "recording.json"
"""A folder with it is a finished recording, which nobody writes to again."""


def require_writable(results: Path, records: Path = Path(".snakemake")) -> None:
    """Raise UserError for the first of `results`, and of Snakemake's `records`, that this user may not write to.

    Before anything is written: Snakemake would fail in the middle of the study. Finished recordings are passed over.
    """
    if os.geteuid() == 0:  # may write to all
        return
    for path in (*_touched(records, depth=1), *_touched(results)):
        if not os.access(path, os.W_OK):
            raise UserError(
                f"{path}: belongs to {_owner(path)}, and you may not write to it; let one user run the study, or give "
                "each a project folder and 'results' of their own"
            )


def _touched(folder: Path, depth: int | None = None) -> Iterator[Path]:
    """The folder, or the one where it would be made, and what is in it that a run may write to, down to a depth."""
    if not folder.is_dir():
        yield next(one for one in folder.absolute().parents if one.is_dir())
        return
    yield folder
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda one: one.name)
    if any(one.name == _FINISHED for one in entries):
        return
    for one in entries:
        if one.is_dir(follow_symlinks=False):
            yield from _touched(Path(one.path)) if depth is None else [Path(one.path)]
        elif depth is None:
            yield Path(one.path)


def _owner(path: Path) -> str:
    uid = path.stat().st_uid
    try:
        return f"user '{pwd.getpwuid(uid).pw_name}'"
    except KeyError:
        return f"user {uid}"
