"""Replace an application by its trace: the virtual clock runs no programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.trace import trace_catalogue

CHOICE: dict[str, Any] = {"timing": {"mode": "original"}, "mapping": {"method": "auto"}, "dependencies": "process"}
"""Settings for drivelab.plan.replay_choice.ReplayChoice. Each request waits for what its process waited for, so a
slower drive lengthens the replay. The replay is never shorter than the trace."""


def find(application: str, folder: Path, source: str) -> trace_catalogue.Entry:
    """Return the shipped trace of an application, or the first by name of several.

    Raises UserError, naming `source` as the place of the request, when no trace is shipped or its file is missing.
    """
    entries = trace_catalogue.load(folder)
    chosen = next((entry for _, entry in sorted(entries.items()) if entry.application == application), None)
    if chosen is None:
        known = ", ".join(sorted({entry.application for entry in entries.values()})) or "none"
        raise UserError(
            f"{source}: application '{application}' cannot run on the virtual clock, and no trace of it is shipped to "
            f"replay instead; set 'clock: wall' in the study, or choose one of: {known}"
        )
    if not chosen.path.is_file():
        raise UserError(f"{source}: {chosen.path} is missing; restore it with git")
    return chosen


def words(trace: str) -> str:
    """Return the note on a duration that comes from a replay."""
    return f"simulated from its trace '{trace}': on the virtual clock no application runs"
