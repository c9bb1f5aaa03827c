"""The page that compares two results: the data of each group of comparable results, packed apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from drivelab.analysis.deltas.deltas import CONFIDENCE_PCT, MARGIN_PCT
from drivelab.criteria.repeats import FEWEST
from drivelab.publish.comparability import REASONS
from drivelab.publish.pages import page
from drivelab.publish.pairs import Verdicts
from drivelab.report.html import packed_json

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
