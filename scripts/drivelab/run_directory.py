"""The folder for state that a reboot ends: virtual drives, changed settings, last users of drives."""

from __future__ import annotations

import os
from pathlib import Path

from drivelab.errors import UserError


def run_directory() -> Path:
    """Return `$DRIVELAB_RUN_DIR`, or /run/drivelab; the folder may not exist yet.

    Raises UserError if the folder belongs to another user, who could make a command restore settings of their choice.
    """
    folder = Path(os.environ.get("DRIVELAB_RUN_DIR", "/run/drivelab")).resolve()
    try:
        owner = folder.stat().st_uid
    except OSError:
        return folder
    if owner not in (0, os.geteuid()):
        raise UserError(
            f"{folder}: belongs to user {owner}, who could change what drivelab keeps there. "
            "Set DRIVELAB_RUN_DIR to a folder that you own."
        )
    return folder
