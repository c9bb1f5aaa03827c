"""Where recordings and tables lie in a folder of results: there, or of a fleet in the folder of each drive."""

from __future__ import annotations

from pathlib import Path

from drivelab.config.study import PARTS
from drivelab.plan.plan import drive_in_sheet


def homes(results: Path) -> list[Path]:
    """Folders of results with recordings and tables of their own: the folder itself, and those of a fleet's drives."""
    return [results, *sorted(results.glob(f"{PARTS}/*/"))]


def home(results: Path, recording: str) -> Path:
    """The one of these that a recording, DRIVE/MEASUREMENT/KEY, belongs to."""
    part = results / PARTS / drive_in_sheet(recording.partition("/")[0])
    return part if part.is_dir() else results
