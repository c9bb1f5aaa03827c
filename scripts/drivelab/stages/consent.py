"""Consent to lose the data of a real drive: given once for each drive and study, kept with the results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from drivelab.config.study import PARTS, Study
from drivelab.errors import UserError
from drivelab.recording.writer import now_iso, write_json

_FILE = "consent.json"


def require(study: Study, serials: Mapping[str, str], yes: bool) -> None:
    """Make sure that somebody agreed to lose the data of drives, given as serial by name, and write that down.

    `yes`, or the study's `consent`, is asked for once: it holds for later runs, until another drive joins. Raises
    UserError, before anything is touched, when it is missing.
    """
    path = study.results / _FILE
    known = _known(path)
    asked = {drive: serial for drive, serial in serials.items() if serial not in known}
    missing = [f"'{drive}' ({serial})" for drive, serial in asked.items() if not yes and serial not in study.consent]
    if missing:
        raise UserError(
            f"study '{study.name}' would destroy the data on {', '.join(missing)} for the first time; read the above, "
            "then run again with --yes, or enter the serials under 'consent' in the study. Nothing was written."
        )
    if asked:
        now = {"at": now_iso(), "by": "--yes" if yes else "the study's 'consent'"}
        write_json(path, {**known, **dict.fromkeys(asked.values(), now)})


def check(results: Path, drive: str, serial: str) -> None:
    """Raise UserError if nobody has agreed to lose a drive's data: a stage may be called without `drivelab run`."""
    folders = (results, results.parent.parent) if results.parent.name == PARTS else (results,)  # a part of a fleet
    if not any(serial in _known(folder / _FILE) for folder in folders):
        raise UserError(
            f"drive '{drive}' ({serial}): nobody has agreed to lose its data in this study; begin it with "
            "'drivelab run STUDY --yes'. Nothing was written."
        )


def _known(path: Path) -> dict[str, object]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError):
        raise UserError(f"{path}: is no record of consent; delete it and run again with --yes") from None
