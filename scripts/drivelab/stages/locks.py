"""Snakemake's locks of a study, which a killed Snakemake leaves behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from drivelab.config.study import DEFAULT_STUDY, PARTS
from drivelab.errors import UserError
from drivelab.files import real_path

_LOCKS = Path(".snakemake/locks")


def place(results: Path) -> Path:
    """Folder for the locks of the study with this results folder.

    Snakemake has one for all that runs in a folder, and removes it at the end of each run: one of two studies side by
    side would fail or lose its locks.
    """
    return _LOCKS / quote(str(results), safe="")


def clear(study: Path, results: Path) -> bool:
    """Remove the locks of a study, after making sure that no Snakemake is at work on it.

    Returns whether there were any. Raises UserError when a Snakemake is at work on it.
    """
    if (pid := at_work(study)) is not None:
        raise UserError(f"Snakemake (process {pid}) is at work on {study}; wait for it to end, or end it")
    found = list(place(results).glob("*.lock"))
    for path in found:
        path.unlink(missing_ok=True)
    return bool(found)


def held(results: Path) -> bool:
    """Whether a Snakemake is at work on files of a study's results, on whichever host, or was killed there.

    Of a drive of a fleet as well, whose own Snakemake has no locks.
    """
    whole = results.parent.parent if results.parent.name == PARTS else results
    return any(place(whole).glob("*.lock"))


def at_work(study: Path) -> int | None:
    """A Snakemake that runs that study in this folder."""
    here = Path.cwd()
    for pid, words in _snakemakes(here):
        named = [word.partition("=")[2] for word in words if word.startswith("study=")]
        if real_path(here / (named[-1] if named else DEFAULT_STUDY)) == real_path(here / study):
            return pid
    return None


def _snakemakes(folder: Path) -> Iterator[tuple[int, list[str]]]:
    """Processes and command lines of those that lock what they work on."""
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            words = [os.fsdecode(word) for word in (directory / "cmdline").read_bytes().split(b"\0")]
            named = any(Path(word).name == "snakemake" for word in words)
            if named and "--nolock" not in words and (directory / "cwd").resolve() == folder:
                yield int(directory.name), words
        except OSError:
            continue
