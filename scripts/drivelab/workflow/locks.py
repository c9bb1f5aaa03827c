"""Snakemake's locks of a study; a killed Snakemake leaves its locks behind."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from drivelab.core.errors import UserError
from drivelab.core.files import real_path
from drivelab.plan.study import DEFAULT_STUDY

_LOCKS = Path(".snakemake/locks")


def place(results: Path) -> Path:
    """Return the folder for the locks of the study with this results folder.

    By default Snakemake has one lock folder per working folder, and removes it at the end of each run. With two
    concurrent studies, one would fail or lose its locks.
    """
    return _LOCKS / quote(str(results), safe="")


def clear(study: Path, results: Path) -> bool:
    """Remove the locks of a study; return whether there were any.

    Raises UserError when a Snakemake process is running the study.
    """
    if (pid := at_work(study)) is not None:
        raise UserError(f"Snakemake (process {pid}) is running {study}; wait for it to end, or stop it")
    locks = list(place(results).glob("*.lock"))
    for path in locks:
        path.unlink(missing_ok=True)
    return bool(locks)


def held(results: Path) -> bool:
    """Return whether a Snakemake on any host is using the results of a study, or was killed while using them."""
    return any(place(results).glob("*.lock"))


def at_work(study: Path) -> int | None:
    """Return the process ID of a Snakemake that runs this study in this folder, or None."""
    here = Path.cwd()
    for pid, arguments in _snakemakes(here):
        named = [argument.partition("=")[2] for argument in arguments if argument.startswith("study=")]
        if real_path(here / (named[-1] if named else DEFAULT_STUDY)) == real_path(here / study):
            return pid
    return None


def _snakemakes(folder: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield process ID and command line of each Snakemake that holds locks."""
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            arguments = [os.fsdecode(argument) for argument in (directory / "cmdline").read_bytes().split(b"\0")]
            named = any(Path(argument).name == "snakemake" for argument in arguments)
            if named and "--nolock" not in arguments and (directory / "cwd").resolve() == folder:
                yield int(directory.name), arguments
        except OSError:
            continue


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
