"""Where recordings and tables lie in a folder of results: there, or of a fleet in the folder of each drive."""

from __future__ import annotations

from pathlib import Path

from drivelab.config.study import PARTS, Study
from drivelab.errors import UserError
from drivelab.plan.plan import drive_in_sheet

OWNER = "study.txt"
"""File of a results folder with the name of the study that it is of."""
RUN_LOCK = ".run.lock"
"""File of a results folder that `drivelab run` holds a lock of, and truncates also where it cannot have that."""


def homes(results: Path) -> list[Path]:
    """Folders of results with recordings and tables of their own: the folder itself, and those of a fleet's drives."""
    return [results, *sorted(results.glob(f"{PARTS}/*/"))]


def home(results: Path, recording: str) -> Path:
    """The one of these that a recording, DRIVE/MEASUREMENT/KEY, belongs to."""
    part = results / PARTS / drive_in_sheet(recording.partition("/")[0])
    return part if part.is_dir() else results


def owner(results: Path) -> str | None:
    """Name of the study that a results folder is of; None where nothing was run yet, or the file is empty."""
    path = results / OWNER
    return (path.read_text(encoding="utf-8").strip() if path.is_file() else "") or None


def refuse_other_owner(study: Study) -> None:
    """Raise UserError if the study's results folder is another study's."""
    if (found := owner(study.results)) not in (None, study.name):
        raise UserError(
            f"{study.path}: key 'results' is {study.results}, which holds study '{found}'; name another folder"
        )
