"""Find the files that drivelab ships, and the folder of the user's project.

A checkout holds both. An installed drivelab keeps what it ships inside its package; `drivelab init` makes projects.
"""

from __future__ import annotations

import os
from pathlib import Path

import drivelab
from drivelab.core.errors import UserError
from drivelab.plan.restored import MARKER as RESTORED

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
        if os.path.isfile(folder / MARKER) and not os.path.exists(folder / RESTORED):  # noqa: PTH110, PTH113 - no error without permission
            return folder
    return SHIPPED


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:  # the current folder was removed
        return Path("/")


ROOT = find_root(_current_folder(), os.environ.get(VARIABLE))
"""The project's folder, with configuration and results. Outside a project, SHIPPED, which only has defaults."""


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
