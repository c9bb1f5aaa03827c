"""From a published number to all that it stands on: recordings, cells with fio's jobs, versions, drive, host, seals."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.errors import UserError
from drivelab.fio.run import COMMAND
from drivelab.plan.plan import Plan
from drivelab.recording.checksums import altered, checksummed
from drivelab.recording.places import home
from drivelab.recording.writer import read_journal
from drivelab.tables.settings import settings

Facts = dict[str, Any]

_PARTS_OF_RECORDING = 3
"""Of a path: drive, measurement and key."""
_OUTPUTS = ("fio.json", "report.json")
"""What the numbers of a cell, of a replay are read from."""
_ENGINE = re.compile(r"^ioengine=(.+)$", re.MULTILINE)
_VERSIONS = ("drivelab", "fio", "engine", "kernel", "python")


def of_value(row: Mapping[str, Any], results: Path, reduced: Mapping[str, str]) -> Facts:
    """Of a row of table `summary`. `reduced` says by recording how its protocol was altered, as `conditions` has it.

    Raises UserError for a recording that is not there, or was altered so that it cannot be read.
    """
    places = [str(one) for one in row["evidence"]]
    return {
        **{name: _plain(value) for name, value in row.items() if name not in ("recordings", "evidence")},
        "recordings": [
            _readable(str(name), results, row, [one for one in places if _recording_of(one) == name])
            | {"alterations": reduced.get(str(name))}
            for name in row["recordings"]
        ],
    }


def of_delta(row: Mapping[str, Any], summary: pd.DataFrame, results: Path, reduced: Mapping[str, str]) -> Facts:
    """Of a row of table `deltas`: with what both values stand on, as `of_value` has it."""
    facts = {name: _plain(value) for name, value in row.items()}
    for side in ("basis", "comparison"):
        fit = summary["drive"] == row[side]
        for name in ("measurement", "cell_label", "metric"):
            fit &= summary[name] == row[name]
        facts[f"{side}_evidence"] = [of_value(one, results, reduced) for one in summary[fit].to_dict("records")]
    return facts


def as_measured(facts: Mapping[str, Any]) -> bool:
    """Whether no recording that a number stands on was altered, as far as checksums tell."""
    sides = [one for side in ("basis", "comparison") for one in facts.get(f"{side}_evidence", ())]
    recordings = [one for value in (facts, *sides) for one in value.get("recordings", ())]
    return not any(one["altered"] for one in recordings)


def _readable(name: str, results: Path, row: Mapping[str, Any], places: Sequence[str]) -> Facts:
    try:
        return _recording(name, results, row, places)
    except (ValueError, LookupError) as error:
        raise UserError(
            f"{_folder(results, name)}: cannot be read ({error}); see 'drivelab verify', and restore it from a "
            "copy or an archive"
        ) from None


def _folder(results: Path, name: str) -> Path:
    return home(results, name) / "recordings" / name


def _recording(name: str, results: Path, row: Mapping[str, Any], places: Sequence[str]) -> Facts:
    folder = _folder(results, name)
    if not folder.is_dir():
        raise UserError(f"{folder}: is not there, the number stands on it; restore it from a copy or an archive")
    journal, host = list(read_journal(folder)), _read(folder / "host.json")
    plan = Plan.read(folder / "plan.json")
    cells = [place.split("/", _PARTS_OF_RECORDING)[_PARTS_OF_RECORDING] for place in places if place != name]
    lines = {line["directory"]: line for line in journal if "directory" in line}
    found = [_cell(folder, one, lines.get(one, {})) for one in cells or _replays(name, results, row, journal)]
    engines = {one["engine"] for one in found if one["engine"]}
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
        "cells": found,
    }  # fmt: skip


def _cell(folder: Path, directory: str, line: Mapping[str, Any]) -> Facts:
    """What one process left, and its line in the journal."""
    place = folder / directory
    job = _text(place / "job.fio")
    output = next((place / one for one in _OUTPUTS if (place / one).is_file()), None)
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
    """Folders of the replays that a value stands on, of its traces and its phase those that count; or of runs of an
    application."""
    path = home(results, name) / "tables" / name / "replays.parquet"
    told = pd.read_parquet(path).to_dict("records") if path.exists() else []
    counted = {(one["step"], one["trace"], one["repeat"]): one for one in told if one["counted"]}
    for line in journal:
        if line["event"] == "replay" and (one := counted.get((line["step"], line["trace"], line["repeat"]))):
            label = str(row["cell_label"])
            phase = "" if pd.isna(one["phase"]) else f", {one['phase']}"
            if label.startswith("set of ") or label == f"replay {one['trace']}{phase}":
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
    """For JSON: null for what is no number, lists for arrays."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return None if value is pd.NaT or value is pd.NA else value
