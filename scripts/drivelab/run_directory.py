"""The folder for what ends with the host's uptime: virtual drives, changed settings, who used a drive last."""

from __future__ import annotations

import os
from pathlib import Path


def run_directory() -> Path:
    """`$DRIVELAB_RUN_DIR`, or /run/drivelab."""
    return Path(os.environ.get("DRIVELAB_RUN_DIR", "/run/drivelab")).resolve()
