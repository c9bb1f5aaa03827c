"""Settings of host and drive, as a recording has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from drivelab.errors import UserError


def settings(recording: Path, *needed: str) -> list[dict[str, Any]] | None:
    """Settings of host and drive as `drivelab.host.settings.snapshot` has them; None where nobody looked.

    Raises UserError for a file that is not as that writes it, or a row without one of the keys `needed`.
    """
    path = recording / "settings.json"
    if not path.exists():
        return None
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        lost = sorted({key for row in rows for key in needed if key not in row})
        found = [dict(row) for row in rows]
    except (ValueError, TypeError):
        lost, found = ["rows"], []
    if lost:
        raise UserError(
            f"{path}: has been altered, it lacks {', '.join(lost)}; "
            f"put the file back as it was, or remove {recording} and measure it anew"
        )
    return found
