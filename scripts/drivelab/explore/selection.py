"""Which recordings a side of a comparison is made of: `op7`, `op7@lab`, `drive=op7,since=2026-05-01`, `FOLDER:op7`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.analysis.exclusions import VERSIONS
from drivelab.errors import UserError
from drivelab.imported import IMPORTED
from drivelab.plan.plan import Plan, drive_in_sheet
from drivelab.recording.places import homes
from drivelab.recording.writer import MANIFEST, UNFINISHED, read_journal
from drivelab.tables import io
from drivelab.tables.facts import recording_facts
from drivelab.tables.inventory import UNKNOWN
from drivelab.tables.soundness import check_place
from drivelab.words import some

_FEW = 8
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
KEYS = ("drive", "host", "firmware", "kernel", "fio", "measurement", "run", "since", "until", "recording")
COLUMNS = (
    "recording", "drive", "measurement", "run", "host", *VERSIONS, "started", "finished", "digest", "digests", "cells",
    "journalled",
)  # fmt: skip


@dataclass(frozen=True)
class Selector:
    """What recordings must be like; `text` is as it was given."""

    text: str
    folder: Path | None
    wanted: Mapping[str, str]


def parse(text: str) -> Selector:
    """A selector: parts `key=value` joined by commas, a bare word being a drive; raises UserError for anything else.

    What stands before a colon is a folder of results, where the colon comes before any `=`.
    """
    folder, found, rest = text.partition(":")
    if not found or "=" in folder or "," in folder:
        folder, rest = "", text
    wanted: dict[str, str] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        key, value = (key.strip(), value.strip()) if equals else ("drive", key.strip())
        if key not in KEYS or not value or key in wanted:
            raise UserError(
                f"'{part}' in '{text}' selects nothing: give a drive, or KEY=VALUE once for any of {', '.join(KEYS)}"
            )
        wanted[key] = _time(value, text) if key in ("since", "until") else value
    if not (wanted or folder):
        raise UserError("an empty selector selects nothing; name a drive, such as op7")
    return Selector(text, Path(folder) if folder else None, wanted)


def catalogue(results: Path) -> pd.DataFrame:
    """A row with COLUMNS for each finished recording of a folder of results, whatever plan it was made by.

    Of an import what its tables say. Raises UserError where there are none, or one is in the place of another.
    """
    if (results / IMPORTED).exists():
        return _imported(results)
    found = [path for one in homes(results) for path in sorted(one.glob(f"recordings/*/*/*/{MANIFEST}"))]
    manifests = [one for one in found if not UNFINISHED.search(one.parent.name)]
    if not manifests:
        raise UserError(f"{results}: holds no finished recordings; name a folder of results as FOLDER:SELECTOR")
    paths = [one.parent for one in manifests]
    for path in paths:
        check_place(path)
    return recording_facts(paths).assign(**pd.DataFrame([_more(one) for one in paths]))[list(COLUMNS)]


def select(recordings: pd.DataFrame, selector: Selector) -> pd.DataFrame:
    """Rows of `catalogue` that a selector names; raises UserError when there is none, or none of one key."""
    chosen = recordings
    for key, value in selector.wanted.items():
        if key == "since":
            match = recordings["started"] >= value
        elif key == "until":
            match = recordings["started"] < _after(value)
        elif key == "drive" and "@" not in value:
            match = recordings["drive"].map(drive_in_sheet) == value
        else:
            match = recordings[key].astype(str) == value
        if not match.any():
            raise UserError(
                f"'{selector.text}' selects nothing: no recording has {key} {value}; there is {_there(recordings, key)}"
            )
        chosen = chosen[match.loc[chosen.index]]
    if chosen.empty:
        raise UserError(f"'{selector.text}' selects nothing: no recording has all of it; leave out a part")
    subjects = sorted(chosen["drive"].unique())
    if len(subjects) > 1:
        raise UserError(
            f"'{selector.text}' selects recordings of {', '.join(subjects)}, whose values are never pooled; add "
            f"drive={subjects[0]}"
        )
    return chosen.reset_index(drop=True)


def _there(recordings: pd.DataFrame, key: str) -> str:
    """What can be selected by a key: of times the first and the last, of names the first few."""
    if key in ("since", "until"):
        first, last = recordings["started"].min(), recordings["started"].max()
        return str(first) if first == last else f"{first} to {last}"
    return some(sorted(set(recordings[key].astype(str))), _FEW)


def _more(recording: Path) -> dict[str, Any]:
    plan, host = Plan.read(recording / "plan.json"), json.loads((recording / "host.json").read_text())
    started = next(line["at"] for line in read_journal(recording))
    return {"run": plan.run, "host": host.get("host") or UNKNOWN, "started": started, "digest": plan.digest}


def _imported(results: Path) -> pd.DataFrame:
    conditions = io.read(results / "tables/conditions.parquet", "conditions")
    rows = []
    for (recording, drive, measurement), of in conditions.groupby(["recording", "drive", "measurement"], sort=False):
        known = dict(zip(of["facet"], of["value"], strict=True))
        facts = {name: known.get(name, UNKNOWN) for name in ("host", *VERSIONS)}
        date = known.get("date", UNKNOWN)
        rows.append(
            {**facts, "recording": recording, "drive": drive, "measurement": measurement, "run": 1, "started": date,
             "finished": date, "digest": recording, "digests": (f"{results}/{recording}",), "cells": None,
             "journalled": 0}
        )  # fmt: skip
    if not rows:
        raise UserError(f"{results}: nothing was imported there; run 'drivelab import' again")
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _time(text: str, selector: str) -> str:
    """A day, or a moment in UTC as recordings have it: both sort as text. A time without a zone is in UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(f"'{text}' in '{selector}' is no date; write it as 2026-05-01 or 2026-05-01T12:30") from None
    if _DAY.fullmatch(text):
        return text
    return time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC).isoformat(timespec="milliseconds")


def _after(text: str) -> str:
    """The first moment that `until` leaves out: a whole day counts, and the moment itself."""
    return f"{text}\x7f"
