"""On the virtual clock no program can run: there the replay of an application's shipped trace stands in for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from drivelab.errors import UserError
from drivelab.trace import catalogue

CHOICE: dict[str, Any] = {"timing": {"mode": "original"}, "mapping": {"method": "auto"}, "dependencies": "process"}
"""As a mapping of drivelab.replay.choice.ReplayChoice: each request waits for what its process waited for, so that a
slower drive makes the replay longer. It is never shorter than the trace."""


def find(application: str, folder: Path, source: str) -> catalogue.Entry:
    """The shipped trace of an application; of several the first by name.

    Raises UserError, with `source` as the place that asks for it, when none is shipped or its file is missing.
    """
    entries = catalogue.load(folder)
    found = next((one for _, one in sorted(entries.items()) if one.application == application), None)
    if found is None:
        known = ", ".join(sorted({one.application for one in entries.values()})) or "none"
        raise UserError(
            f"{source}: application '{application}' cannot run on the virtual clock, and no trace of it is shipped to "
            f"stand in for it; give the study 'clock: wall', or take one of: {known}"
        )
    if not found.path.is_file():
        raise UserError(f"{source}: {found.path} is missing; restore it with git")
    return found


def words(trace: str) -> str:
    """What a reader must know of a duration that comes from a replay."""
    return f"simulated from its trace '{trace}': on the virtual clock no application runs"
