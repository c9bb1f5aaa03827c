"""Make the record of a study: everything that a site shows of its archive, as JSON.

The record is a function of the archive and of this drivelab only, so publishing it again gives the same bytes.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

import drivelab
from drivelab.analysis import limits
from drivelab.analysis.deltas.differences import NOT_RECORDED
from drivelab.analysis.fleet_statistics import VALUE, Tracked, key_values
from drivelab.analysis.verdict import FINE, HOST_LIMITED, NOT_STEADY, STEADY, TAINTED
from drivelab.core.units import parse_size
from drivelab.criteria.repeats import FEWEST
from drivelab.plan.subject_kinds import DRIVE
from drivelab.publish import FORMAT
from drivelab.publish.comparability import conditions_of, facets_of, group_of
from drivelab.publish.comparability import labels_of as labels_of_facets
from drivelab.publish.reading import Archived
from drivelab.report.numbers import is_missing, metric_name, metric_order, size, unit_of
from drivelab.report.sentences import workload_words

MOST_TEXT = 300
"""Characters of a text that a site shows; real ones are shorter."""
MOST_CONDITION = 2_000
"""Characters of a condition: how a protocol was reduced takes several lines."""
MOST_EVIDENCE = 40
"""Paths of evidence that a value lists; `evidence_count` counts all."""
_WORKLOAD = re.compile(r"(?:RND|SEQ) (?P<size>\d{1,6}[KMG]?i?B) (?P<read>\d{1,3})/", re.ASCII)
MOST_SAMPLES = 2_000
"""Samples, and recordings, that a value lists."""
_TEXTS = ("cell_label", "metric", "kind", "unit", "scope", "statistic", "verdict")
_NUMBERS = ("value", "rse_pct", "spread_low", "spread_high", "interval_low", "interval_high", "mad", "asymptote_pct")

Record = dict[str, Any]


def record_of(archived: Archived) -> Record:
    """Return the record of a study: archive, title, and an entry for each drive and measurement."""
    entries, kinds = [], {}
    for home, tables in archived.homes.items():
        for entry, of_entry in _entries(archived, home, tables):
            entries.append(entry)
            kinds.update(of_entry)
    dates = [entry["date"] for entry in entries if entry["date"]]
    return {
        "format": FORMAT,
        "drivelab": drivelab.__version__,
        "archive": {"sha256": archived.digest, "size_bytes": archived.size_bytes},
        "study": {
            "name": text(archived.name),
            "title": text(archived.about.get("name")) or text(archived.name),
            "license": text(_named(archived.about.get("license"))),
            "date": max(dates, default=""),
        },
        "report": "report.html" if archived.report else None,
        "without_report": archived.without_report,
        "kinds": kinds,
        "entries": entries,
    }


def text(value: object, most: int = MOST_TEXT) -> str:
    """Return a text of an archive without control characters, at most `most` long; empty for a missing one."""
    if is_missing(value):
        return ""
    plain = "".join(letter if letter.isprintable() else " " for letter in str(value))
    plain = plain.encode("utf-8", "replace").decode()
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def finite(value: object) -> float | None:
    """Return a finite number; None for everything else."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def model_of(drive: Mapping[str, Any]) -> Record:
    """Return the model of a drive, from its row in table `drives`.

    Drives are of one model if name, capacity, kind and, for a virtual drive, over-provisioning are equal.
    """
    virtual = bool(drive.get("virtual"))
    kind = text(drive.get("kind")) or DRIVE.name
    share = finite(drive.get("over_provisioning_pct")) if virtual else None
    capacity = finite(drive.get("capacity_bytes"))
    about: Record = {
        "name": text(drive.get("model")) or f"{text(drive.get('drive')) or 'drive'}, model not recorded",
        "capacity_bytes": None if capacity is None else int(capacity),
        "kind": kind,
        "over_provisioning_pct": share,
        "virtual": virtual,
    }
    details = [
        size(about["capacity_bytes"]) if about["capacity_bytes"] else "",
        "" if kind == DRIVE.name else kind,
        "" if share is None else f"{share:g} % over-provisioning",
    ]
    key = "\n".join(map(str, about.values()))
    slug = re.sub(r"[^a-z0-9]+", "-", about["name"].casefold())[:40].strip("-")
    return {
        "id": f"{slug or 'model'}-{hashlib.sha256(key.encode()).hexdigest()[:8]}",
        **about,
        "details": ", ".join(filter(None, details)),
    }


def labels_of(rows: list[Record], facets: Mapping[str, str], recordings: int) -> list[str]:
    """Return what limits the values of an entry, gravest first."""
    verdicts = {row["verdict"] for row in rows}
    labels = {
        **labels_of_facets(facets),
        limits.IMPORTED: all(limits.is_imported(row["recordings"]) for row in rows),
        limits.TAINTED: any(row["taint_reason"] for row in rows) or TAINTED in verdicts,
        limits.HOST_LIMITED: HOST_LIMITED in verdicts,
        limits.NOT_STEADY: NOT_STEADY in verdicts,
        limits.SINGLE_RECORDING: recordings == 1,
        "two recordings": 1 < recordings < FEWEST,
    }
    return [label for label, applies in labels.items() if applies]


def _entries(
    archived: Archived, home: str, tables: Mapping[str, pd.DataFrame]
) -> Iterator[tuple[Record, dict[str, str]]]:
    drives = {str(row["drive"]): row for row in tables["drives"].to_dict("records")}
    summary = tables["summary"]
    keys = set(key_values(summary, _tracked(summary))[VALUE].itertuples(index=False, name=None))
    for (name, measurement), rows in summary.groupby(["drive", "measurement"], sort=True):
        first = rows.iloc[0].to_dict()
        names = list(dict.fromkeys(str(name) for several in rows["recordings"] for name in several[:MOST_SAMPLES]))
        conditions, kinds = conditions_of(tables["conditions"], names)
        facets = {facet: text(value) or NOT_RECORDED for facet, value in facets_of(conditions, first).items()}
        values = [_value(row) for row in rows.to_dict("records")]
        drive = drives.get(str(name), drives.get(str(name).partition("@")[0], {}))
        key = next((at for at, row in enumerate(rows[VALUE].itertuples(index=False, name=None)) if row in keys), 0)
        entry = {
            "id": hashlib.sha256(f"{archived.digest}\n{home}\n{name}\n{measurement}".encode()).hexdigest()[:12],
            "results": home,
            "drive": text(name),
            "serial": text(drive.get("serial")),
            "firmware": text(drive.get("firmware")),
            "transport": text(drive.get("transport")),
            "model": model_of(drive),
            "measurement": text(measurement),
            "protocol": facets["protocol"],
            "date": conditions.get("date", "")[:10] if _is_date(conditions.get("date", "")[:10]) else "",
            "host": text(conditions.get("host")),
            "group": group_of(facets),
            "facets": facets,
            "labels": labels_of(values, facets, len(names)),
            "recordings": [{"name": text(name), "sha256": archived.fingerprints.get(name)} for name in names],
            "conditions": {
                text(facet): text(value, MOST_CONDITION) or NOT_RECORDED for facet, value in conditions.items()
            },
            "key": key,
            "values": values,
        }
        yield entry, {text(facet): text(kind) for facet, kind in kinds.items()}


def _tracked(summary: pd.DataFrame) -> Tracked:
    """Return the tracked variables of each measurement: writes before reads, small blocks first, as in the PTS."""
    steady = summary[summary["verdict"].isin((STEADY, NOT_STEADY))]
    tracked: dict[str, set[tuple[str, str]]] = {}
    for row in steady.itertuples():
        tracked.setdefault(row.measurement, set()).add((row.cell_label, row.metric))
    return {measurement: sorted(variables, key=_turn) for measurement, variables in tracked.items()}


def _turn(variable: tuple[str, str]) -> tuple[Any, ...]:
    label, metric = variable
    match = _WORKLOAD.match(label)
    place = (int(match["read"]), parse_size(match["size"])) if match else (101, 0)
    return (*metric_order(metric)[:1], *place, label)


def _value(row: Mapping[str, Any]) -> Record:
    return {
        **{name: text(row[name]) for name in _TEXTS},
        "words": text(workload_words(text(row["cell_label"]))),
        "metric_words": text(metric_name(str(row["metric"]))),
        "unit_words": text(unit_of(str(row["metric"]), row["unit"])),
        **{name: finite(row[name]) for name in _NUMBERS},
        "n": int(row["n"]),
        "samples": [finite(sample) for sample in row["samples"][:MOST_SAMPLES]],
        "fault": "" if row["verdict"] in FINE else text(row["verdict"]),
        "taint_reason": text(row["taint_reason"]),
        "reduced": bool(row["reduced"]),
        "virtual": bool(row["virtual"]),
        "clock": text(row["clock"]),
        "recordings": [text(name) for name in row["recordings"][:MOST_SAMPLES]],
        "evidence": [text(place) for place in row["evidence"][:MOST_EVIDENCE]],
        "evidence_count": len(row["evidence"]),
    }


def _is_date(words: str) -> bool:
    return bool(re.fullmatch(r"\d{4}-\d{2}-\d{2}", words, re.ASCII))


def _named(value: object) -> object:
    """Return the identifier of a JSON-LD reference, or the value itself."""
    return value.get("@id") if isinstance(value, Mapping) else value


def display_name(entry: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """Return a name of an entry that no other study of the site has."""
    return f"{entry['drive']} ({record['study']['name']}, {record['archive']['sha256'][:8]})"
