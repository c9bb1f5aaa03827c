"""The results folder of a study: its owner, and what its recordings took."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from drivelab.core.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.plan.study import Study
from drivelab.recording.writer import MANIFEST, RESUMPTIONS, read_journal

OWNER = "study.txt"
"""File of a results folder with the name of its study."""
RUN_LOCK = ".run.lock"
"""File of a results folder that a run locks; its text says who runs the study, its time when that was last alive."""

STUDY_TABLES = (
    "exclusions", "summary", "conditions", "differences", "deltas", "model_deltas", "variation", "drives", "hosts",
    "traces",
)  # fmt: skip
"""Tables of a whole study, in `tables/`; each recording and trace has others in a folder below."""


def owner(results: Path) -> str | None:
    """Return the name of a results folder's study. Return None before the first run, or if the file is empty."""
    path = results / OWNER
    return (path.read_text(encoding="utf-8").strip() if path.is_file() else "") or None


def refuse_other_owner(study: Study) -> None:
    """Raise UserError if the study's results folder belongs to another study."""
    if (other := owner(study.results)) not in (None, study.name):
        raise UserError(
            f"{study.path}: key 'results' is {study.results}, which belongs to study '{other}'; name another folder"
        )


def tables_folder(recording: Path) -> Path:
    """Return the folder with the tables of a recording, from the recording's folder in the same results."""
    *results, _, drive, measurement, key = recording.parts
    return Path(*results, "tables", drive, measurement, key)


def is_recorded(plan: Plan) -> bool:
    """Return whether the recording exists here, whichever host made it."""
    return (plan.recording_path / MANIFEST).exists()


def worked_s(recording: Path, until_s: float | None = None) -> float:
    """Return the seconds from a recording's first line to its last, or to `until_s`.

    `until_s` (Unix time) is for a running recording. Pauses before a continuation are excluded. 0 if the journal is
    missing or damaged.
    """
    worked_s, last_s = 0.0, None
    try:
        for line in read_journal(recording):
            at_s = datetime.fromisoformat(line["at"]).timestamp()
            if last_s is not None and line["event"] not in RESUMPTIONS:
                worked_s += at_s - last_s
            last_s = at_s
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return 0.0
    return worked_s + (max(until_s - last_s, 0.0) if until_s is not None and last_s is not None else 0.0)
