"""The tables `drives`, `hosts` and `traces` of a study, from its recordings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.core.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.plan.subject_kinds import DRIVE
from drivelab.recording.writer import read_journal, read_object
from drivelab.tables import io
from drivelab.tables.schemas import SCHEMAS
from drivelab.trace.statistics.count import row_of
from drivelab.trace.trace_catalogue import sha256_of

UNKNOWN = "not recorded"


def drives(recordings: Sequence[Path]) -> pd.DataFrame:
    """Return one row per drive and identity; a drive that changed, such as its firmware, has two."""
    rows = [
        _fill(read_facts(recording / "identity.json"), "drives", {"virtual": False, "kind": DRIVE.name})
        for recording in recordings
    ]
    return _unique(rows, "drives")


def is_virtual(recording: Path, plan: Plan) -> bool:
    """Return whether a recording is of a virtual drive: by its plan, or because a path of a real drive led to one."""
    return plan.virtual or read_object(recording / "identity.json").get("virtual") is True


def hosts(recordings: Sequence[Path]) -> pd.DataFrame:
    """Return one row per host and set of versions."""
    return _unique([_fill(read_facts(recording / "host.json"), "hosts", {}) for recording in recordings], "hosts")


def inventory_tables(
    recordings: Sequence[Path], traces: Mapping[str, Path], trace_tables: Sequence[Path]
) -> dict[str, pd.DataFrame]:
    """Return the tables `drives`, `hosts` and `traces`.

    `traces` holds the files of the study's traces by name, `trace_tables` the folders with their tables. Raises
    UserError if a recording used a different capture of a trace.
    """
    check_traces(recordings, traces)
    names = ("trace_overview", "trace_operations")
    rows = [row_of({name: io.read(folder / f"{name}.parquet", name) for name in names}) for folder in trace_tables]
    of_traces = pd.DataFrame(rows, columns=SCHEMAS["traces"].names)
    return {"drives": drives(recordings), "hosts": hosts(recordings), "traces": of_traces}


def check_traces(recordings: Sequence[Path], paths: Mapping[str, Path]) -> None:
    """Raise UserError if a recording used a different capture of a study's trace than the present file.

    The trace that replaces an application on the virtual clock is not a trace of the study; the plan has its digest.
    """
    for recording in recordings:
        for line in read_journal(recording):
            if "trace_sha256" not in line or line["event"] == "application":
                continue
            if line["trace_sha256"] != sha256_of(paths[line["trace"]]):
                raise UserError(
                    f"{recording}: used a different capture of trace '{line['trace']}' than {paths[line['trace']]}; "
                    "restore that file, or delete all recordings of the trace to measure them again"
                )


def read_facts(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def _fill(facts: Mapping[str, Any], table: str, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a table; an unknown value in a required column is UNKNOWN."""
    row: dict[str, Any] = {}
    for field in SCHEMAS[table]:
        value = facts.get(field.name, defaults.get(field.name))
        row[field.name] = UNKNOWN if value is None and not field.nullable else value
    return row


def _unique(rows: list[dict[str, Any]], table: str) -> pd.DataFrame:
    names = SCHEMAS[table].names
    return pd.DataFrame(rows, columns=names).drop_duplicates(ignore_index=True).sort_values(names[0], ignore_index=True)


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
