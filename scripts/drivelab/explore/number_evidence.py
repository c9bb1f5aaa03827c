"""Trace a published number to its evidence: recordings, fio jobs, drive, host."""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.collect.inventory import settings
from drivelab.collect.recording_tables import recording_tables
from drivelab.core.errors import UserError
from drivelab.core.units import some
from drivelab.explore import recomputed
from drivelab.fio.job_run import COMMAND
from drivelab.plan.plan import Plan
from drivelab.recording.checksums import altered, checksummed
from drivelab.recording.folders import home
from drivelab.recording.writer import read_journal

Facts = dict[str, Any]

_PARTS_OF_RECORDING = 3
"""Parts of a path that name its recording: drive, measurement and key."""
_OUTPUTS = ("fio.json", "report.json")
"""Files with the numbers of a cell, of a replay."""
_ENGINE = re.compile(r"^ioengine=(.+)$", re.MULTILINE)
_VERSIONS = ("drivelab", "fio", "engine", "kernel", "python")


def of_value(row: Mapping[str, Any], results: Path, reduced: Mapping[str, str]) -> Facts:
    """Return the facts of a row of table `summary`.

    `reduced` says for each recording how its protocol was altered, as in `conditions`. Raises UserError for a recording
    that is missing, or was altered and cannot be read.
    """
    places = [str(place) for place in row["evidence"]]
    return {
        **_recomputed(row["value"], lambda: recomputed.of_value(row, results)),
        **{name: _plain(value) for name, value in row.items() if name not in ("recordings", "evidence")},
        "recordings": [
            _readable(str(name), results, row, [place for place in places if _recording_of(place) == name])
            | {"alterations": reduced.get(str(name))}
            for name in row["recordings"]
        ],
    }


def of_delta(row: Mapping[str, Any], summary: pd.DataFrame, results: Path, reduced: Mapping[str, str]) -> Facts:
    """Return the facts of a row of table `deltas`, and those of both values."""
    facts = {name: _plain(value) for name, value in row.items()}
    sides: list[dict[str, Any]] = []
    for side in ("basis", "comparison"):
        matches = summary["drive"] == row[side]
        for name in ("measurement", "cell_label", "metric"):
            matches &= summary[name] == row[name]
        values = summary[matches].to_dict("records")
        facts[f"{side}_evidence"] = [of_value(value, results, reduced) for value in values]
        sides += values
    return _recomputed(row["delta_pct"], lambda: recomputed.of_delta(row, sides, results)) | facts


def as_measured(facts: Mapping[str, Any]) -> bool:
    """Say whether all recordings behind a number are unaltered by checksum, and give the number again."""
    sides = [value for side in ("basis", "comparison") for value in facts.get(f"{side}_evidence", ())]
    recordings = [recording for value in (facts, *sides) for recording in value.get("recordings", ())]
    return all(value["agrees"] for value in (facts, *sides)) and not any(
        recording["altered"] for recording in recordings
    )


def _recomputed(value: object, compute: Callable[[], float | None]) -> Facts:
    """Return the number that the recordings give, and whether it is the table's; altered evidence may give none."""
    try:
        again = compute()
    except (UserError, ValueError, LookupError):
        again = None
    return {"recomputed": again, "agrees": recomputed.agrees(value, again)}


def _readable(name: str, results: Path, row: Mapping[str, Any], places: Sequence[str]) -> Facts:
    try:
        return _recording(name, results, row, places)
    except (ValueError, LookupError) as error:
        raise UserError(
            f"{_folder(results, name)}: cannot be read ({error}); check it with 'drivelab verify' and restore it from "
            "a copy or an archive"
        ) from None


def _folder(results: Path, name: str) -> Path:
    return home(results, name) / "recordings" / name


def _recording(name: str, results: Path, row: Mapping[str, Any], places: Sequence[str]) -> Facts:
    folder = _folder(results, name)
    if not folder.is_dir():
        raise UserError(f"{folder}: does not exist, but the number uses it; restore it from a copy or an archive")
    journal, host = list(read_journal(folder)), _read(folder / "host.json")
    plan = Plan.read(folder / "plan.json")
    directories = [place.split("/", _PARTS_OF_RECORDING)[_PARTS_OF_RECORDING] for place in places if place != name]
    lines = {line["directory"]: line for line in journal if "directory" in line}
    cells = [
        _cell(folder, directory, lines.get(directory, {}))
        for directory in directories or _replays(name, results, row, journal)
    ]
    engines = {cell["engine"] for cell in cells if cell["engine"]}
    changes = altered(folder)
    return {
        "recording": name,
        "folder": str(folder),
        "started": journal[0]["at"],
        "finished": journal[-1]["at"],
        "plan_digest": plan.digest,
        "protocol": plan.subject["protocol"],
        "run": plan.run,
        "scenario": plan.subject["scenario"],
        "clock": plan.clock,
        "versions": {key: host.get(key) for key in _VERSIONS}
        | ({"engine": ", ".join(sorted(engines))} if engines else {}),
        "drive": _read(folder / "identity.json"),
        "host": {key: value for key, value in host.items() if key not in _VERSIONS},
        "settings": settings(folder, "name", "state"),
        "seals": [{key: line.get(key) for key in ("at", "stage", "intact", "reason")}
                  for line in journal if line["event"] == "verdict"],
        "gaps": [line["reason"] for line in journal if line["event"] == "gap"],
        "checksums": "altered" if changes else "as measured" if checksummed(folder) else "not checksummed",
        "altered": changes,
        "cells": cells,
    }  # fmt: skip


def _cell(folder: Path, directory: str, line: Mapping[str, Any]) -> Facts:
    """Return the facts of one process, from its files and its line in the journal."""
    place = folder / directory
    job = _text(place / "job.fio")
    output = next((place / name for name in _OUTPUTS if (place / name).is_file()), None)
    status = _text(place / "exit_code")
    engine = _ENGINE.search(job or "")
    return {
        "directory": str(place),
        "at": line.get("at"),
        "round": line.get("round", line.get("repeat")),
        "command": _text(place / COMMAND),
        "job": job,
        "engine": engine[1] if engine else line.get("engine", _application(line)),
        "choice": line.get("choice"),
        "exit_status": line.get("exit_status") if status is None else int(status),
        "output": None if output is None else str(output),
        "output_sha256": None if output is None else hashlib.sha256(output.read_bytes()).hexdigest(),
    }


def _application(line: Mapping[str, Any]) -> str | None:
    return line.get("remark", f"application {line['application']}") if "application" in line else None


def _replays(name: str, results: Path, row: Mapping[str, Any], journal: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the folders of the replays or application runs behind a value.

    Of the replays of its traces and its phase, only those that count.
    """
    tables = recording_tables(_folder(results, name), reduced=bool(row["reduced"]))
    replays = tables["replays"].to_dict("records")
    counted = {(replay["step"], replay["trace"], replay["repeat"]): replay for replay in replays if replay["counted"]}
    for line in journal:
        if line["event"] == "replay" and (replay := counted.get((line["step"], line["trace"], line["repeat"]))):
            label = str(row["cell_label"])
            phase = "" if pd.isna(replay["phase"]) else f", {replay['phase']}"
            if label.startswith("set of ") or label == f"replay {replay['trace']}{phase}":
                yield str(line["directory"])
        elif line["event"] == "application" and not line["cold"]:
            yield str(line["directory"])


def _recording_of(place: str) -> str:
    return "/".join(place.split("/")[:_PARTS_OF_RECORDING])


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None


def _read(path: Path) -> Facts:
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def _plain(value: Any) -> Any:
    """Convert a value for JSON: missing values to None, arrays to lists."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if value is pd.NaT or value is pd.NA else value


KEYS = {
    "summary": ("drive", "measurement", "protocol", "cell_label", "metric"),
    "deltas": ("comparison", "basis", "measurement", "protocol", "cell_label", "metric"),
}
"""Columns that identify a number, by table."""
_FEW = 12


def choose(rows: pd.DataFrame, table: str, words: Sequence[str]) -> pd.DataFrame:
    """Return the rows of a table of KEYS that match all words, with their index.

    A word is COLUMN=VALUE, or a value of any column, whole or in part. If it is the whole value of a row, partial
    matches are left out. Case does not matter. Raises UserError, with the existing values, for a word without a match.
    """
    chosen = rows
    for word in words:
        column, equals, value = word.partition("=")
        if equals and column in KEYS[table]:
            matches = chosen[column].str.casefold() == value.strip().casefold()
        else:
            texts = [chosen[name].astype(str).str.casefold() for name in KEYS[table]]
            matches = _any(text == word.casefold() for text in texts)
            if not matches.any():
                matches = _any(text.str.contains(word.casefold(), regex=False) for text in texts)
        if not matches.any():
            if equals and column not in KEYS[table]:
                raise _no_column(column, table, column in rows.columns)
            names = [column] if equals else list(KEYS[table])
            existing = "; ".join(f"{name}: {_listed(chosen[name])}" for name in names)
            raise UserError(f"'{word}' matches no number of {table}; there is {existing}")
        chosen = chosen[matches]
    return chosen


def _no_column(column: str, table: str, exists: bool) -> UserError:
    """Return the error for COLUMN=VALUE with a column that is not in KEYS. `exists`: the table has the column."""
    known = ", ".join(KEYS[table])
    if exists:
        return UserError(f"numbers of {table} cannot be selected by column '{column}'; use one of {known}")
    close = difflib.get_close_matches(column.casefold(), KEYS[table], 1)
    remedy = f"did you mean '{close[0]}'? Columns are {known}" if close else f"use one of {known}"
    return UserError(f"there is no column '{column}' in {table}; {remedy}")


def _any(masks: object) -> pd.Series:
    return pd.concat(list(masks), axis=1).any(axis=1)  # type: ignore[call-overload]


def _listed(values: pd.Series) -> str:
    return some(list(dict.fromkeys(values.astype(str))), _FEW)
