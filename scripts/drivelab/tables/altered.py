"""Evidence that is not as it was measured, by the checksums of its recording: it is left out as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from drivelab.analysis.soundness import ALTERED, because
from drivelab.errors import UserError
from drivelab.recording.checksums import altered
from drivelab.words import some

_NAMED = 5


def against_checksums(recording: Path) -> str | None:
    """Why a recording counts nowhere, as of the column `unsound`, if any file of it was altered, lost or added."""
    found = [f"{name} {what}" for name, what in altered(recording).items()]
    if not found:
        return None
    words = f"since it was measured, {some(found, _NAMED)}"
    return because(ALTERED, words.replace(";", ","))  # reasons are separated by semicolons


@contextmanager
def refused_unreadable(recording: Path, reason: str | None) -> Iterator[None]:
    """Turn whatever goes wrong in reading an altered recording into a UserError that says what was altered.

    So it is where a description of the recording, which all tables are made from, is no longer JSON.
    """
    try:
        for path in sorted(recording.glob("*.json")) if reason is not None else ():
            json.loads(path.read_bytes())
        yield
    except UserError:
        raise
    except Exception as error:
        if reason is None:
            raise
        raise UserError(
            f"{recording}: {reason}, and it cannot be read any more ({error!r}); restore it from a copy, or remove the "
            "folder, and it is measured anew"
        ) from error


def left_out(tables: Mapping[str, pd.DataFrame], reason: str | None) -> dict[str, pd.DataFrame]:
    """The tables of an altered recording with nothing that counts: cells unsound, replays and runs uncounted."""
    if reason is None:
        return dict(tables)
    found = {}
    for name, table in tables.items():
        marks: dict[str, object] = {"unsound": reason} if name == "cells" else {}
        if "counted" in table.columns:
            marks["counted"] = False
            if "taint_reason" in table.columns:
                marks |= {"tainted": True, "taint_reason": reason}
        found[name] = table.head(0) if name in ("latency_bins", "series") else table.assign(**marks)
    return found
