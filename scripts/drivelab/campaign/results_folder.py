"""The results folder of a study: whether the study and this user may use it, and what it has lost."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from drivelab.campaign.planning import Campaign
from drivelab.core.errors import UserError
from drivelab.imported import IMPORTED
from drivelab.plan.places import restored_folder
from drivelab.plan.study import Study
from drivelab.recording import checksums
from drivelab.recording.folders import owner, refuse_other_owner
from drivelab.recording.writer import MANIFEST, Recording


def refuse_foreign(study: Study) -> None:
    """Raise UserError if the results folder is another study's, holds imported results, or is not a folder.

    Also if it has recordings of a fleet of drivelab 0.1: their drives would be measured again.
    """
    results = study.results
    refuse_other_owner(study)
    if (results / IMPORTED).exists():
        raise UserError(f"{study.path}: key 'results' is {results}, which holds imported results; name another folder")
    if any(owner(path.parents[1]) == study.name for path in results.glob("drives/*/recordings/*")):
        raise UserError(
            f"{results}: holds recordings of a fleet, each drive in its own folder; move them, or they would be "
            f"measured again: mkdir -p {results}/recordings; "
            f"mv {results}/drives/*/recordings/* {results}/recordings/"
        )
    for path in (results, *results.parents):
        if os.path.lexists(path) and not path.is_dir():
            raise UserError(
                f"{study.path}: key 'results' is {results}, but {path} is not a folder; move it away, or "
                "name another folder"
            )


def set_torn_aside(campaign: Campaign) -> bool:
    """Set aside finished recordings that lost files in a loss of power, so that they are measured again.

    Say so, and return whether there were any. Recordings of an archive stay: they were not measured here. Do not call
    this while a Snakemake measures.
    """
    torn = False
    if restored_folder(campaign.study.results) is not None:
        return torn
    for plan in campaign.here:
        recording = Recording(plan)
        if (loss := checksums.torn(recording.final)) is not None:
            aside, torn = recording.set_final_aside(), True
            print(
                f"drivelab: {plan.recording}: is not whole: {loss}, as after a loss of power. It is measured "
                f"again; the rest is in {aside}.",
                file=sys.stderr,
            )
    return torn


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
    if any(entry.name == MANIFEST for entry in entries):  # a finished recording never changes
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _touched(Path(entry.path)) if depth is None else [Path(entry.path)]
        elif depth is None:
            yield Path(entry.path)


def _owner(path: Path) -> str:
    try:
        return f"user '{path.owner()}'"
    except KeyError:
        return f"user {path.stat().st_uid}"
