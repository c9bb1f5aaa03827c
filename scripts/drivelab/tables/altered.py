"""Exclude recordings whose files no longer match their checksums."""

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
    """Return why a recording is unsound if any of its files was altered, lost or added, else None."""
    changes = [f"{name} {change}" for name, change in altered(recording).items()]
    if not changes:
        return None
    reason = f"since it was measured, {some(changes, _NAMED)}"
    return because(ALTERED, reason.replace(";", ","))  # semicolons separate reasons


@contextmanager
def refused_unreadable(recording: Path, reason: str | None) -> Iterator[None]:
    """Convert any error in reading an altered recording to a UserError that names the alterations.

    `reason` comes from `against_checksums`. A file that is no longer JSON is such an error: all tables need it.
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
            f"{recording}: {reason}. It can no longer be read ({error!r}); restore it from a copy, or delete the "
            "folder to measure again"
        ) from error


def left_out(tables: Mapping[str, pd.DataFrame], reason: str | None) -> dict[str, pd.DataFrame]:
    """Exclude all rows of an altered recording: cells become unsound, replays and runs uncounted."""
    if reason is None:
        return dict(tables)
    excluded = {}
    for name, table in tables.items():
        marks: dict[str, object] = {"unsound": reason} if name == "cells" else {}
        if "counted" in table.columns:
            marks["counted"] = False
            if "taint_reason" in table.columns:
                marks |= {"tainted": True, "taint_reason": reason}
        excluded[name] = table.head(0) if name in ("latency_bins", "series") else table.assign(**marks)
    return excluded
