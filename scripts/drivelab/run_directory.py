"""The folder for what ends with the host's uptime: virtual drives, changed settings, who used a drive last."""

from __future__ import annotations

import os
from pathlib import Path

from drivelab.errors import UserError


def run_directory() -> Path:
    """Return `$DRIVELAB_RUN_DIR`, or /run/drivelab; the folder may not exist yet.

    Raises UserError when it belongs to another user: that user could make a command undo settings of another's choice.
    """
    folder = Path(os.environ.get("DRIVELAB_RUN_DIR", "/run/drivelab")).resolve()
    try:
        owner = folder.stat().st_uid
    except OSError:
        return folder
    if owner not in (0, os.geteuid()):
        raise UserError(
            f"{folder}: belongs to user {owner}, who could change what drivelab keeps there. "
            "Set DRIVELAB_RUN_DIR to a folder of your own."
        )
    return folder
