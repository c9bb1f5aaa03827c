"""Find the files that drivelab ships, the folder of the user's project, and folders that a study was restored into.

A checkout holds the first two. An installed drivelab keeps what it ships inside its package; `drivelab init` makes
projects. The content of a restored folder came from an archive and is not trusted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import drivelab
from drivelab.core.errors import UserError
from drivelab.core.private import refuse_foreign_code

RESTORED_MARKER = "restored.json"
"""File of a restored folder. `drivelab archive restore` writes it; an archive cannot hold one."""
OUTSIDE = "elsewhere"
"""Folder of an archive for files that were outside the project's folder."""
SHEET_SUFFIX = ".tsv"
"""Required for a restored study's drive sheet: files with other suffixes keep their `destructive: yes`."""


def restored_folder(path: Path) -> Path | None:
    """Return the restored folder that a path is in, or None."""
    place = path.resolve()
    return next((folder for folder in (place, *place.parents) if (folder / RESTORED_MARKER).is_file()), None)


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


MARKER = ".drivelab"
"""File of a project folder. `drivelab init` writes it; an archive cannot hold one."""
VARIABLE = "DRIVELAB_PROJECT"
"""Environment variable that names the project folder. A study in another folder is run with the project's settings."""
_PACKAGE = Path(drivelab.__file__).resolve().parent
_WITHIN = _PACKAGE / "shipped"
IS_INSTALLED = _WITHIN.is_dir()
"""Whether drivelab runs from an installed package, not from a checkout."""
SHIPPED = _WITHIN if IS_INSTALLED else _PACKAGE.parents[1]
"""Folder with the workflow, its schemas and scripts, profiles, default configuration and traces."""
COMMAND = "drivelab" if IS_INSTALLED else "./drivelab"
"""What users type, for messages."""


def find_root(start: Path, named: str | None = None) -> Path:
    """Return the project's folder: `named`, or the nearest at or above `start`, or SHIPPED.

    A checkout is a project. A folder that an archive was restored into is never one.
    """
    if named:
        return Path(named)
    for folder in (start, *start.parents):
        if folder == SHIPPED:
            break
        if os.path.isfile(folder / MARKER) and not os.path.exists(folder / RESTORED_MARKER):  # noqa: PTH110, PTH113 - no error without permission
            return folder
    return SHIPPED


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:  # the current folder was removed
        return Path("/")


ROOT = find_root(_current_folder(), os.environ.get(VARIABLE))
"""The project's folder, with configuration and results. Outside a project, SHIPPED, which only has defaults."""


_CODE = (MARKER, "Snakefile", "snakefile", "workflow", "profiles", "config", "scripts", ".snakemake/iocache")
"""Files and folders of a project that lead to code: Snakemake's, and commands of workloads and meters. Modules beside
the Snakefile are code too: Snakemake puts its folder first on Python's path."""


def refuse_foreign_project(root: Path) -> None:
    """Raise UserError if another user than this one and root can change what a project runs (CVE-2022-24765 of git).

    SHIPPED, a checkout too, is not checked: its owner's code is what runs here already.
    """
    if root != SHIPPED:
        folders = [folder for folder in (root, root / ".snakemake") if folder.exists()]
        modules = [*root.glob("*.py*"), *root.glob("*.so"), *(file.parent for file in root.glob("*/__init__.*"))]
        refuse_foreign_code([*(root / name for name in _CODE), *modules], folders)


def refuse_foreign_file(path: Path) -> None:
    """Raise UserError if another user can change a study or profile that was named, which may hold commands."""
    if not path.resolve().is_relative_to(SHIPPED):
        refuse_foreign_code([path])


def is_project() -> bool:
    """Return whether ROOT is a project, which a checkout is too."""
    return not IS_INSTALLED or ROOT != SHIPPED


def require_project() -> None:
    """Raise UserError outside a project, where nothing may be written."""
    if not is_project():
        raise UserError(
            "there is no project in this folder. A project holds studies, drive sheet, protocols and results. Make one "
            "with 'drivelab init DIR', and run this command in DIR."
        )
