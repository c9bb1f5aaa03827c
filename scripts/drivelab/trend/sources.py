"""Read values recording by recording from results folders and archives."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.analysis.deltas.differences import NOT_RECORDED
from drivelab.analysis.deltas.doubts import OVER_RECORDINGS
from drivelab.core.errors import UserError
from drivelab.explore.row_selection import Selector, catalogue
from drivelab.explore.side import side_of
from drivelab.imported import IMPORTED
from drivelab.publish.comparability import conditions_of, facets_of, group_of
from drivelab.publish.reading import read_archive
from drivelab.publish.record import model_of, text
from drivelab.recording.checksums import CHECKSUMS
from drivelab.recording.folders import home
from drivelab.tables import io

_VALUE = ("cell_label", "metric", "kind", "unit", "verdict", "taint_reason", "reduced", "virtual", "clock")
_TABLES = ("summary", "conditions", "drives")
_POOLED = "recordings"
"""The `scope` of a value with a sample for each recording."""


@dataclass(frozen=True)
class Recording:
    """One recording with its values."""

    source: str
    name: str
    started: str
    """ISO 8601, of an archive the day; empty if it is not recorded."""
    drive: str
    model: Mapping[str, Any]
    """As `drivelab.publish.record.model_of` returns it."""
    firmware: str
    host: str
    protocol: str
    group: str
    """Recordings of one group are comparable, see `drivelab.publish.comparability`."""
    facets: Mapping[str, str]
    conditions: Mapping[str, str]
    values: Sequence[Mapping[str, Any]]
    """Rows like those of table `summary`, of this recording alone."""
    fingerprint: str = ""
    """Equal for copies of one recording only; empty if it is not known."""

    @property
    def identity(self) -> str:
        """Return what identifies the drive in all sources: its serial number, or its name if none is recorded."""
        serial = text(self.conditions.get("serial"))
        return self.drive if serial in ("", NOT_RECORDED) else serial

    @property
    def place(self) -> str:
        """Return a name that no recording of another source has."""
        return f"{self.source}, {self.name}"


@dataclass
class Sources:
    """All recordings of some results folders and archives, each once."""

    recordings: list[Recording] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """Why, by the name of the recording or source."""

    def add(self, recording: Recording) -> None:
        """Add a recording unless a copy of it is there."""
        for other in self.recordings:
            same = other.fingerprint == recording.fingerprint if recording.fingerprint and other.fingerprint else (
                (other.name, other.started) == (recording.name, recording.started))  # fmt: skip
            if same and other.protocol == recording.protocol:
                self.left_out[recording.place] = f"a copy of it is in {other.source}"
                return
        self.recordings.append(recording)


def read_sources(paths: Sequence[Path]) -> Sources:
    """Return the recordings of results folders and archives.

    Raises UserError for a path that is neither, for an altered archive, and for a folder without finished recordings.
    """
    sources = Sources()
    for path in paths:
        if not path.exists():
            raise UserError(f"{path}: does not exist. Name results folders, or files of 'drivelab archive create'.")
        found = list(_of_folder(path, sources) if path.is_dir() else _of_archive(path))
        if not found:
            raise UserError(f"{path}: holds no values. Run its study to the end, then name it again.")
        for recording in found:
            sources.add(recording)
    return sources


def _of_archive(path: Path) -> Iterator[Recording]:
    archived = read_archive(path)
    for tables in archived.homes.values():
        yield from _pooled(path.name, tables, archived.fingerprints)


def _of_folder(results: Path, sources: Sources) -> Iterator[Recording]:
    if (results / IMPORTED).exists():
        tables = {name: io.read([results / f"tables/{name}.parquet"], name) for name in _TABLES}
        yield from _pooled(str(results), tables, {})
        return
    known = catalogue(results)
    for name, row in zip(known["recording"], known.to_dict("records"), strict=True):
        folder = home(results, name)
        if not (folder / "tables" / name / "cells.parquet").exists():
            sources.left_out[f"{results}, {name}"] = "it has no tables; run its study again"
            continue
        side = side_of(Selector(name, None, {}), results, known[known["recording"] == name])
        for exclusion in side.exclusions.itertuples():
            sources.left_out[f"{results}, {name}, {exclusion.place}"] = f"{exclusion.fault}: {exclusion.words}"
        if side.summary.empty:
            continue
        recording = folder / "recordings" / name
        identity = json.loads((recording / "identity.json").read_text(encoding="utf-8"))
        sums = recording / CHECKSUMS
        yield _recording(
            str(results), name, str(row["started"]), identity | {"drive": row["drive"]}, side.conditions, side.summary,
            hashlib.sha256(sums.read_bytes()).hexdigest() if sums.exists() else "",
        )  # fmt: skip


def _pooled(source: str, tables: Mapping[str, pd.DataFrame], fingerprints: Mapping[str, str]) -> Iterator[Recording]:
    """Yield the recordings of table `summary`, which has a sample of each."""
    drives = {str(row["drive"]): row for row in tables["drives"].to_dict("records")}
    for (drive, _), rows in tables["summary"].groupby(["drive", "measurement"], sort=False):
        about = drives.get(str(drive)) or drives.get(str(drive).partition("@")[0]) or {"drive": drive}
        for name in dict.fromkeys(str(name) for names in rows["recordings"] for name in names):
            singles = [single for row in rows.to_dict("records") if (single := _single(row, name)) is not None]
            if singles:
                frame = pd.DataFrame(singles)
                yield _recording(source, name, "", {**about, "drive": drive}, tables["conditions"], frame,
                                 fingerprints.get(name, ""))  # fmt: skip


def _single(row: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """Return the value of one recording in a row of table `summary`."""
    names = [str(recording) for recording in row["recordings"]]
    if name not in names:
        return None
    if len(names) == 1:
        return dict(row)
    if row["scope"] != _POOLED or len(row["samples"]) != len(names):
        return None
    return {**row, "value": float(row["samples"][names.index(name)]),
            "statistic": OVER_RECORDINGS.sub("", str(row["statistic"]))}  # fmt: skip


def _recording(
    source: str, name: str, started: str, drive: Mapping[str, Any], conditions: pd.DataFrame, values: pd.DataFrame,
    fingerprint: str,
) -> Recording:  # fmt: skip
    known, _ = conditions_of(conditions, [name])
    first = values.iloc[0].to_dict()
    facets = {facet: text(value) or NOT_RECORDED for facet, value in facets_of(known, first).items()}
    date = known.get("date", "")
    return Recording(
        text(source), text(name), started or (date if re.fullmatch(r"\d{4}-\d\d-\d\d", date) else ""),
        text(drive["drive"]), model_of({**drive, "virtual": first["virtual"]}),
        text(known.get("firmware") or drive.get("firmware")), text(known.get("host")), facets["protocol"],
        group_of(facets), facets, known,
        [{**{column: row[column] for column in (*_VALUE, "value", "statistic", "asymptote_pct")}}
         for row in values.to_dict("records")],
        fingerprint,
    )  # fmt: skip
