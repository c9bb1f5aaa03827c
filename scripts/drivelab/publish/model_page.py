"""The page of a drive model: its results by protocol, their history, conditions and evidence."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drivelab.core.grouping import grouped
from drivelab.publish.comparability import SEVERAL, reasons
from drivelab.publish.pages import page, strip
from drivelab.report.numbers import number, percent

MOST_HISTORY = 200
"""Results of a group in the history, latest first."""
_MOST_VALUES = 4
"""Values of a condition that the page lists."""
_OPEN_ROWS = 12
"""Tables with more rows are folded."""
_OF_VALUE = (
    "cell_label", "metric", "kind", "words", "metric_words", "unit_words", "value", "spread_low", "spread_high",
    "rse_pct", "statistic", "verdict", "fault", "taint_reason", "recordings", "evidence", "evidence_count",
)  # fmt: skip
"""Fields of a value that the page shows."""
_IDENTITY = ("serial", "host", "date", "drive")
Entry = dict[str, Any]


def model_page(title: str, entries: Iterable[Entry], groups: Mapping[str, Mapping[str, str]]) -> str:
    """Return the HTML of a model; `entries` are all its results with their values."""
    by_group = grouped(map(_slim, entries), lambda entry: str(entry["group"]))
    for of_group in by_group.values():
        of_group.sort(key=lambda entry: (entry["date"], entry["sha256"], entry["id"]), reverse=True)
    largest_first = sorted(by_group, key=lambda name: (-len(by_group[name]), name))
    protocols = grouped(largest_first, lambda name: groups[name]["protocol"])
    proofs: list[list[Any]] = []
    sections = [
        {"id": f"protocol-{place}", "protocol": protocol,
         "groups": [_group(by_group[name], groups, of_protocol[0], proofs) for name in of_protocol]}
        for place, (protocol, of_protocol) in enumerate(sorted(protocols.items()), start=1)
    ]  # fmt: skip
    everything = [entry for of_group in by_group.values() for entry in of_group]
    return page(
        "model.html.j2",
        title,
        {
            "root": "../",
            "model": everything[0]["model"],
            "firmware": sorted({entry["firmware"] for entry in everything} - {""}),
            "drives": len({entry["serial"] or entry["drive"] for entry in everything}),
            "studies": len({entry["sha256"] for entry in everything}),
            "recordings": number(sum(len(entry["recordings"]) for entry in everything)),
            "sections": sections,
            "proofs": proofs,
        },
    )


def _slim(entry: Entry) -> Entry:
    """Return an entry without what its page does not show."""
    values = [{name: row[name] for name in _OF_VALUE} for row in entry["values"]]
    return {**entry, "values": values, "facets": None}


def _group(
    entries: Sequence[Entry], groups: Mapping[str, Mapping[str, str]], first: str, proofs: list[list[Any]]
) -> dict[str, Any]:
    latest = entries[0]
    key = latest["values"][latest["key"]]
    values = _values(entries, proofs)
    return {
        "id": f"group-{latest['group']}",
        "labels": [label for label in latest["labels"] if all(label in entry["labels"] for entry in entries)],
        "apart": reasons(groups[first], groups[latest["group"]]),
        "latest": latest,
        "key": key,
        "rows": values,
        "folded": len(values) > _OPEN_ROWS,
        "history": _history(entries[:MOST_HISTORY], key),
        "older": max(0, len(entries) - MOST_HISTORY),
        "count": len(entries),
        "conditions": _conditions(entries),
        "commands": _commands(latest, key),
    }


def _values(entries: Sequence[Entry], proofs: list[list[Any]]) -> list[dict[str, Any]]:
    """Return a row for each value of the latest entry: the value, and where all entries lie."""
    all_values: dict[tuple[str, str], list[float]] = {}
    for entry in entries:
        for row in entry["values"]:
            if row["value"] is not None:
                all_values.setdefault((row["cell_label"], row["metric"]), []).append(row["value"])
    rows = []
    for row in entries[0]["values"]:
        others = all_values.get((row["cell_label"], row["metric"]), [])
        proofs.append(_proof(entries[0], row))
        rows.append(
            {**row, "shown": number(row["value"]), "proof": len(proofs) - 1,
             "range": f"{number(min(others))} to {number(max(others))}" if len(others) > 1 else "",
             "strip": strip(row["value"], row["spread_low"], row["spread_high"], others)
             if row["value"] is not None and len(others) > 1 else None}
        )  # fmt: skip
    return rows


def _proof(entry: Entry, row: Mapping[str, Any]) -> list[Any]:
    """Return where a number comes from, as the dialog of reports expects it."""
    spread = f"{number(row['spread_low'])} to {number(row['spread_high'])}" if row["spread_low"] is not None else ""
    facts = [
        ("Value", f"{number(row['value'])} {row['unit_words']}".strip()),
        ("Statistic", row["statistic"]),
        ("Spread", spread),
        ("Relative standard error", "" if row["rse_pct"] is None else percent(row["rse_pct"])),
        ("Verdict on the value", row["verdict"]),
        ("Taint", row["taint_reason"]),
        ("Drive", " · ".join(filter(None, (entry["drive"], entry["serial"], entry["firmware"])))),
        ("Archive, SHA-256", entry["sha256"]),
        ("Check it", _commands(entry, row)[-1]),
        ("Evidence", f"{row['evidence_count']} places, {len(row['evidence'])} listed"),
    ]
    title = f"{row['words']}: {row['metric_words']}"
    return [title, [fact for fact in facts if fact[1]], row["recordings"], row["evidence"], []]


def _commands(entry: Entry, row: Mapping[str, Any]) -> list[str]:
    """Return the commands that restore the archive and show the evidence for a value."""
    results = f"restored/{entry['study']['name']}/{entry['results']}"
    words = (entry["drive"], entry["measurement"], row["cell_label"], row["metric"])
    asked = " ".join(shlex.quote(f"{column}={word}") for column, word in
                     zip(("drive", "measurement", "cell_label", "metric"), words, strict=True))  # fmt: skip
    return [
        f"./drivelab archive verify ARCHIVE --digest {entry['sha256']}",
        "./drivelab archive restore ARCHIVE",
        f"./drivelab evidence {asked} --results {shlex.quote(results)}",
    ]


def _history(entries: Sequence[Entry], key: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each entry, latest first, with its key value."""
    found = []
    for entry in entries:
        same = (
            row for row in entry["values"] if row["cell_label"] == key["cell_label"] and row["metric"] == key["metric"]
        )
        found.append(next(same, None))
    top = [row["spread_high"] or row["value"] for row in found if row and row["value"] is not None]
    return [
        {"entry": entry, "row": row, "shown": number(row["value"]) if row else "",
         "strip": strip(row["value"], row["spread_low"], row["spread_high"], top=max(top))
         if row and row["value"] is not None else None}
        for entry, row in zip(entries, found, strict=True)
    ]  # fmt: skip


def _conditions(entries: Sequence[Entry]) -> list[tuple[str, str, bool]]:
    """Return each condition, its values, and whether it differs between the entries."""
    values: dict[str, dict[str, None]] = {}
    for entry in entries:
        for facet, value in entry["conditions"].items():
            if facet not in _IDENTITY:
                values.setdefault(facet, {})[value] = None
    rows = []
    for facet, several in values.items():
        shown = list(several)[:_MOST_VALUES]
        more = f"{SEVERAL}and {len(several) - len(shown)} more" if len(several) > len(shown) else ""
        rows.append((facet, SEVERAL.join(shown) + more, len(several) > 1))
    return sorted(rows, key=lambda row: not row[2])
