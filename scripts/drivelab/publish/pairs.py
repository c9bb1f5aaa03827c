"""Judge pairs of comparable results by the rules of `drivelab compare`, a bounded number of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import pandas as pd

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.criteria.repeats import FEWEST
from drivelab.publish.record import finite
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
        **{column: float("nan") for column in ("rse_pct", "mad", "interval_low", "interval_high", "asymptote_pct")
           if value[column] is None},
    }  # fmt: skip
