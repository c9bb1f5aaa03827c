"""Find folders that a study was restored into.

Their content came from an archive and is not trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from drivelab.core.errors import UserError

MARKER = "restored.json"
"""File of a restored folder. `drivelab archive restore` writes it; an archive cannot hold one."""
OUTSIDE = "elsewhere"
"""Folder of an archive for files that were outside the project's folder."""
SHEET_SUFFIX = ".tsv"
"""Required for a restored study's drive sheet: files with other suffixes keep their `destructive: yes`."""


def restored_folder(path: Path) -> Path | None:
    """Return the restored folder that a path is in, or None."""
    place = path.resolve()
    return next((folder for folder in (place, *place.parents) if (folder / MARKER).is_file()), None)


def refuse_outside(study: Path, sheet: Path, others: Mapping[str, Path]) -> None:
    """Raise UserError if a restored study uses an outside path or another sheet type.

    `others` are paths by key. A study that was not restored is not checked.
    """
    folder = restored_folder(study)
    if folder is None:
        return
    for key, path in {"drives_sheet": sheet, **others}.items():
        if not (folder / path).resolve().is_relative_to(folder):
            raise UserError(
                f"{study}: key '{key}' is {path}, outside the folder {folder} that the study was restored into. A "
                f"restored study uses only files in its folder. Enter a path within it, such as {OUTSIDE}/…"
            )
    if sheet.suffix != SHEET_SUFFIX:
        raise UserError(
            f"{study}: key 'drives_sheet' is {sheet}. The drive sheet of a restored study must be a {SHEET_SUFFIX} "
            "file, in which 'archive restore' has set destructive: no. Rename the sheet and check its rows."
        )
