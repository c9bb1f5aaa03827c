"""Decide which results of a site may be compared, and why others may not.

Results with equal values of all FACETS form a group; they are compared within it only. The facets are those for which
`drivelab compare` doubts every difference. All other conditions may differ, and the page lists them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from drivelab.analysis.deltas.differences import NOT_RECORDED, STEPS
from drivelab.analysis.deltas.doubts import OTHER_CONDITIONS
from drivelab.analysis.limits import NO_PURGE, NOT_PURGED, REDUCED, VIRTUAL, VIRTUAL_CLOCK
from drivelab.collect.conditions import FULL_LENGTH
from drivelab.criteria.inert import IO_PATH

SEVERAL = " | "
"""Separates the values of a condition that differs between the recordings of one result."""
PURGED = "purged"
REASONS: Mapping[str, str] = {
    "protocol": "different protocols: {a} and {b}",
    **dict(OTHER_CONDITIONS),
    STEPS: "the steps of the protocol differ (plans {a} and {b})",
    PURGED: "only one of the drives was purged",
    **{
        name: f"{name} differs: {{a}} and {{b}}"
        for name in ("class", "active range", "fill", "data pattern", IO_PATH, "traces")
    },
}
"""Facets that must be equal, and the reason if they differ; {a} and {b} are the values."""
FACETS = tuple(REASONS)


def facets_of(conditions: Mapping[str, str], row: Mapping[str, Any]) -> dict[str, str]:
    """Return the FACETS of a result from its conditions and a row of its table `summary`."""
    known = {name: conditions.get(name, NOT_RECORDED) for name in FACETS}
    purge = conditions.get("purge", NOT_RECORDED)
    return known | {
        "protocol": str(row["protocol"]),
        "reduced": "yes" if row["reduced"] or conditions.get("reduced", FULL_LENGTH) != FULL_LENGTH else "no",
        "virtual": "yes" if row["virtual"] else "no",
        "clock": str(row["clock"]),
        PURGED: "no" if set(purge.split(SEVERAL)) & set(NO_PURGE) else "yes",
    }


def group_of(facets: Mapping[str, str]) -> str:
    """Return the name of the group of comparable results: a digest of the facets."""
    text = json.dumps([facets[name] for name in FACETS], ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def labels_of(facets: Mapping[str, str]) -> dict[str, bool]:
    """Return the labels that facets decide, and whether each applies."""
    return {
        REDUCED: facets["reduced"] == "yes",
        VIRTUAL: facets["virtual"] == "yes",
        VIRTUAL_CLOCK: "virtual" in facets["clock"],
        NOT_PURGED: facets[PURGED] == "no",
    }


def reasons(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Return why results with these facets are not compared; empty for results of one group."""
    return [
        words.format_map({"a": one[name], "b": other[name]})
        for name, words in REASONS.items()
        if one[name] != other[name]
    ]


def conditions_of(table: pd.DataFrame, recordings: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the value and the kind of each condition of some recordings, from table `conditions`."""
    rows = table[table["recording"].isin(set(recordings))]
    values: dict[str, set[str]] = {}
    kinds: dict[str, str] = {}
    for facet, kind, value in zip(rows["facet"], rows["kind"], rows["value"], strict=True):
        values.setdefault(str(facet), set()).add(str(value))
        kinds[str(facet)] = str(kind)
    return {facet: SEVERAL.join(sorted(several)) for facet, several in values.items()}, kinds
