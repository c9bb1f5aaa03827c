"""Select recordings of a results folder by their facts: drive, firmware, host, versions, dates."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.analysis.exclusions import recording_facts
from drivelab.collect.inventory import UNKNOWN
from drivelab.collect.soundness_of_cells import check_place
from drivelab.core.errors import UserError
from drivelab.core.units import some
from drivelab.imported import IMPORTED
from drivelab.plan.plan import Plan, drive_in_sheet
from drivelab.recording.writer import MANIFEST, UNFINISHED, VERSIONS, read_journal
from drivelab.tables import io

_FEW = 8
_TIMES = ("date", "since", "until")
_DATE = re.compile(r"\d{4}(-\d\d(-\d\d)?)?")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
KEYS = ("drive", "host", "firmware", "kernel", "fio", "measurement", "run", "date", "since", "until", "recording")
COLUMNS = (
    "recording", "drive", "measurement", "run", "host", *VERSIONS, "started", "finished", "digest", "digests", "cells",
    "journalled",
)  # fmt: skip


@dataclass(frozen=True)
class Selector:
    """The conditions on recordings; `text` is the selector as given."""

    text: str
    folder: Path | None
    wanted: Mapping[str, str]


def parse(text: str) -> Selector:
    """Parse a selector: parts `key=value` joined by commas; a bare word is a drive.

    Text before a colon is a results folder if it contains no `=` or comma. Raises UserError for anything else.
    """
    folder, colon, rest = text.partition(":")
    if not colon or "=" in folder or "," in folder:
        folder, rest = "", text
    wanted: dict[str, str] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        key, value = (key.strip(), value.strip()) if equals else ("drive", key.strip())
        if key not in KEYS or not value or key in wanted:
            raise UserError(
                f"'{part}' in '{text}' is not a valid selector; give a drive, or KEY=VALUE once for each of "
                f"{', '.join(KEYS)}"
            )
        if key == "date" and not _DATE.fullmatch(value):
            raise UserError(
                f"'{value}' in '{text}' is not a date; write a year, month or day: 2026, 2026-05, 2026-05-01"
            )
        wanted[key] = _time(value, text) if key in ("since", "until") else value
    if not (wanted or folder):
        raise UserError("the selector is empty; name a drive, such as op7")
    return Selector(text, Path(folder) if folder else None, wanted)


def catalogue(results: Path) -> pd.DataFrame:
    """Return a row with COLUMNS for each finished recording of any plan.

    For an import, the rows come from its tables. Raises UserError if there are no recordings, or if a recording is in
    the folder of another one.
    """
    if (results / IMPORTED).exists():
        return _imported(results)
    manifests = sorted(results.glob(f"recordings/*/*/*/{MANIFEST}"))
    paths = [manifest.parent for manifest in manifests if not UNFINISHED.search(manifest.parent.name)]
    if not paths:
        others = sorted({str(path.parents[4]) for path in results.glob(f"*/recordings/*/*/*/{MANIFEST}")})
        there = f"; there are some in {some(others, 3)}" if others else ""
        what = "has no finished recordings" if results.is_dir() else "does not exist"
        raise UserError(f"{results} {what}{there}. Name the folder with --results, or the study with --study")
    for path in paths:
        check_place(path)
    return recording_facts(paths).assign(**pd.DataFrame([_more(path) for path in paths]))[list(COLUMNS)]


def select(recordings: pd.DataFrame, selector: Selector) -> pd.DataFrame:
    """Return the rows of `catalogue` that a selector matches.

    Raises UserError if no row matches, and if rows of several drives match.
    """
    chosen = recordings
    for key, value in selector.wanted.items():
        if key == "date":
            match = recordings["started"].astype(str).str.startswith(value)
        elif key == "since":
            match = recordings["started"] >= value
        elif key == "until":
            match = recordings["started"] < f"{value}\x7f"  # the given day or time is included
        elif key == "drive" and "@" not in value:
            match = recordings["drive"].map(drive_in_sheet) == value
        else:
            match = recordings[key].astype(str) == value
        if not match.any():
            first, last = recordings["started"].min(), recordings["started"].max()
            there = some(sorted(set(recordings[key].astype(str))), _FEW) if key not in _TIMES else (
                str(first) if first == last else f"{first} to {last}")  # fmt: skip
            raise UserError(f"'{selector.text}' selects nothing: no recording has {key} {value}; there is {there}")
        chosen = chosen[match.loc[chosen.index]]
    if chosen.empty:
        raise UserError(f"'{selector.text}' selects nothing: no recording matches all parts; leave out a part")
    subjects = sorted(chosen["drive"].unique())
    if len(subjects) > 1:
        raise UserError(
            f"'{selector.text}' selects recordings of several drives: {', '.join(subjects)}; their values are never "
            f"pooled, so add a drive, such as drive={subjects[0]}"
        )
    return chosen.reset_index(drop=True)


def _more(recording: Path) -> dict[str, Any]:
    plan, host = Plan.read(recording / "plan.json"), json.loads((recording / "host.json").read_text())
    started = next(line["at"] for line in read_journal(recording))
    return {"run": plan.run, "host": host.get("host") or UNKNOWN, "started": started, "digest": plan.digest}


def _imported(results: Path) -> pd.DataFrame:
    conditions = io.read(results / "tables/conditions.parquet", "conditions")
    rows, key = [], ["recording", "drive", "measurement"]
    for (recording, drive, measurement), facets in conditions.groupby(key, sort=False):
        known = dict.fromkeys(("host", "date", *VERSIONS), UNKNOWN) | facets.set_index("facet")["value"].to_dict()
        rows.append({
            **known, "recording": recording, "drive": drive, "measurement": measurement, "run": 1,
            "started": known["date"], "finished": known["date"], "digest": recording,
            "digests": (f"{results}/{recording}",), "cells": None, "journalled": 0,
        })  # fmt: skip
    if not rows:
        raise UserError(f"{results}: the import has no recordings; run 'drivelab import' again")
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _time(text: str, selector: str) -> str:
    """Return a day, or a time in UTC as in recordings. Both sort as text. A time without a zone is in UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(f"'{text}' in '{selector}' is not a date; write it as 2026-05-01 or 2026-05-01T12:30") from None
    if _DAY.fullmatch(text):
        return text
    return time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC).isoformat(timespec="milliseconds")
