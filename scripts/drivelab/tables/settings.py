"""The host and drive settings in a recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from drivelab.errors import UserError


def settings(recording: Path, *needed: str) -> list[dict[str, Any]] | None:
    """Return the settings written by `drivelab.host.settings.snapshot`; None if they were not checked.

    Raises UserError for an altered file, or a row without one of the keys `needed`.
    """
    path = recording / "settings.json"
    if not path.exists():
        return None
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        missing = sorted({key for row in rows for key in needed if key not in row})
        copies = [dict(row) for row in rows]
    except (ValueError, TypeError):
        missing, copies = ["rows"], []
    if missing:
        raise UserError(
            f"{path}: the file was altered and lacks {', '.join(missing)}; "
            f"restore the original file, or delete {recording} to measure again"
        )
    return copies
