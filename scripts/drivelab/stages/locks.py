"""Snakemake's locks on the files of a folder, which a killed Snakemake leaves behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from drivelab.config.study import DEFAULT_STUDY, PARTS
from drivelab.config.study_parts import IN_RESULTS
from drivelab.errors import UserError

_LOCKS = Path(".snakemake/locks")


def clear(study: Path, results: Path) -> bool:
    """Remove locks on files of a study's results, after making sure that no Snakemake is at work on that study.

    Those of other studies, which may be run in this folder at the same time, stay. Returns whether there were any.
    Raises UserError when a Snakemake is at work on it.
    """
    if (pid := at_work(study)) is not None:
        raise UserError(f"Snakemake (process {pid}) is at work on {study}; wait for it to end, or end it")
    found = list(_locks(results))
    for path in found:
        path.unlink(missing_ok=True)
    return bool(found)


def held(results: Path) -> bool:
    """Whether a Snakemake is at work on files of a study's results, on whichever host, or was killed there.

    Of a drive of a fleet as well, whose own Snakemake has no locks.
    """
    whole = results.parent.parent if results.parent.name == PARTS else results
    return any(True for _ in _locks(whole))


def _locks(results: Path) -> Iterator[Path]:
    for path in _LOCKS.glob("*.lock"):
        try:
            ours = any(_is_of(results, line) for line in path.read_text(encoding="utf-8").splitlines())
        except (OSError, UnicodeDecodeError):  # gone with its Snakemake, or cut short by a crash
            ours = path.exists()
        if ours:
            yield path


def _is_of(results: Path, path: str) -> bool:
    """Whether a path is below a results folder; other studies may be below it, too."""
    below = path.removeprefix(f"{results}/")
    return below != path and below.partition("/")[0] in IN_RESULTS


def at_work(study: Path) -> int | None:
    """A Snakemake that runs that study in this folder."""
    here = Path.cwd()
    for pid, words in _snakemakes(here):
        named = [word.partition("=")[2] for word in words if word.startswith("study=")]
        if (here / (named[-1] if named else DEFAULT_STUDY)).resolve() == (here / study).resolve():
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
