"""Judge pairs of comparable results by the rules of `drivelab compare`, and write the page that compares two.

The number of pairs is bounded. The page has the data of each group of comparable results, packed apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import pandas as pd

from drivelab.analysis.deltas.deltas import CONFIDENCE_PCT, MARGIN_PCT, deltas_table
from drivelab.criteria.repeats import FEWEST
from drivelab.publish.comparability import REASONS
from drivelab.publish.pages import page
from drivelab.publish.record import finite
from drivelab.report.html import packed_json
from drivelab.tables.schemas import SCHEMAS

MOST_OF_GROUP = 45
"""Pairs that get a verdict in a group of comparable results: all pairs of 10 results."""
MOST_CANDIDATES = 20
"""Results of a group, with enough recordings, that pairs are made of."""
MOST_OF_SITE = 300
"""Pairs that get a verdict on a site; each takes about a third of a second, once."""
_LEAST, _MOST = 1e-12, 1e15
Entry = Mapping[str, Any]
Verdicts = list[list[Any]]
"""For each value of both entries: cell label, metric, verdict, interval low and high in percent, doubts."""


def judged_pairs(entries: Sequence[Entry], most: int = MOST_OF_GROUP) -> Iterator[tuple[Entry, Entry]]:
    """Yield the pairs of a group that get a verdict, the first `most` of those with enough recordings.

    Entries come in a fixed order, so the same collection always gets the same pairs.
    """
    enough = [entry for entry in entries if len(entry["recordings"]) >= FEWEST]
    count = 0
    for basis, comparison in combinations(enough, 2):
        if count == most:
            return
        if not shared(basis, comparison):
            count += 1
            yield basis, comparison


def shared(one: Entry, other: Entry) -> list[str]:
    """Return the names of recordings that are in both entries: such entries are not independent."""
    prints = {recording["sha256"] for recording in other["recordings"]} - {None}
    return [recording["name"] for recording in one["recordings"] if recording["sha256"] in prints]


def verdicts(basis: Entry, comparison: Entry, names: tuple[str, str]) -> Verdicts:
    """Return the verdict on each common value; `names` are those of the two sides in doubts."""
    basis, comparison = _measurable(basis), _measurable(comparison)
    rows = [_row(entry, value, name) for entry, name in zip((basis, comparison), names, strict=True)
            for value in entry["values"]]  # fmt: skip
    if len({row["drive"] for row in rows}) < 2:
        return []
    summary = pd.DataFrame(rows, columns=SCHEMAS["summary"].names)
    table = deltas_table(summary, names[0])
    return [
        [row.cell_label, row.metric, row.verdict, finite(row.interval_low_pct), finite(row.interval_high_pct),
         list(row.doubts)]
        for row in table.itertuples()
    ]  # fmt: skip


def _measurable(entry: Entry) -> Entry:
    """Return an entry without values that no drive has, which an archive may hold nevertheless."""
    return {**entry, "values": [row for row in entry["values"]
                                if all(number is not None and _LEAST < number < _MOST
                                       for number in (row["value"], *row["samples"]))]}  # fmt: skip


def _row(entry: Entry, value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a row of table `summary`; both sides get the names of their group, which they share anyway."""
    return {
        **{column: value.get(column) for column in SCHEMAS["summary"].names},
        "drive": name,
        "measurement": entry["protocol"],
        "protocol": entry["protocol"],
        "taint_reason": value["taint_reason"] or None,
        "samples": [float("nan") if sample is None else sample for sample in value["samples"]],
        "disturbance_pct": float("nan"),
        **{column: float("nan") for column in ("rse_pct", "mad", "interval_low", "interval_high", "asymptote_pct")
           if value[column] is None},
    }  # fmt: skip


_OF_CELL = ("words", "cell_label", "metric_words", "unit_words", "kind")
_END = "<!-- groups -->"
"""Where the data of the groups go, one by one, so that only one is in memory."""


class Block:
    """The data that the page needs of one group: values by cell, conditions, verdicts of pairs."""

    def __init__(self) -> None:
        self._cells: dict[tuple[str, str], list[str]] = {}
        self._facets: dict[str, str] = {}
        self._entries: dict[str, list[Any]] = {}
        self._pairs: dict[str, list[list[Any]]] = {}

    def add(self, entry: Mapping[str, Any]) -> None:
        """Add an entry with its values."""
        places = {key: place for place, key in enumerate(self._cells)}
        values = []
        for row in entry["values"]:
            key = row["cell_label"], row["metric"]
            if key not in places:
                places[key] = len(places)
                self._cells[key] = [row[name] for name in _OF_CELL]
            values.append([places[key], row["value"], row["spread_low"], row["spread_high"], len(row["recordings"]),
                           row["fault"], row["statistic"]])  # fmt: skip
        for facet, kind in entry["kinds"].items():
            self._facets.setdefault(facet, kind)
        prints = [recording["sha256"] for recording in entry["recordings"] if recording["sha256"]]
        self._entries[entry["id"]] = [values, entry["conditions"], [name[:16] for name in prints]]

    def judge(self, pair: str, verdicts: Verdicts) -> None:
        """Add the verdicts of a pair, `ID ID`: basis and comparison."""
        places = {key: place for place, key in enumerate(self._cells)}
        self._pairs[pair] = [
            [places[cell, metric], verdict, low, high, doubts]
            for cell, metric, verdict, low, high, doubts in verdicts
            if (cell, metric) in places
        ]

    def data(self) -> dict[str, Any]:
        """Return the data as plain lists, in a fixed order."""
        return {
            "cells": list(self._cells.values()),
            "kinds": dict(sorted(self._facets.items())),
            "entries": dict(sorted(self._entries.items())),
            "pairs": dict(sorted(self._pairs.items())),
        }


def compare_page(
    title: str,
    entries: Sequence[Mapping[str, Any]],
    groups: Mapping[str, Any],
    blocks: Iterable[tuple[str, Mapping[str, Any]]],
) -> Iterator[str]:
    """Yield the parts of the page; the data of a group are dropped when they are written."""
    head = {
        "entries": [
            [entry["id"], entry["group"], entry["name"], entry["model"]["name"], entry["model"]["details"],
             entry["firmware"], entry["protocol"], entry["date"], entry["recordings"], entry["labels"],
             entry["measurement"], entry["serial"]]
            for entry in entries
        ],
        "groups": groups,
        "reasons": list(REASONS.items()),
        "terms": {"fewest": FEWEST, "margin_pct": MARGIN_PCT},
    }  # fmt: skip
    terms = {"fewest": FEWEST, "margin": f"{MARGIN_PCT:g}", "confidence": f"{CONFIDENCE_PCT:g}"}
    html = page("compare.html.j2", title, {"head": head, "terms": terms, "end": _END, "count": len(entries)})
    before, _, after = html.partition(_END)
    yield before
    for group, block in blocks:
        yield f'<script type="application/gzip" id="group-{group}">{packed_json(block)}</script>\n'
    yield after
