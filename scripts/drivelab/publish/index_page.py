"""The first page of a site: drive models, tests in order of their key values, studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drivelab.analysis import limits
from drivelab.core.grouping import grouped
from drivelab.core.units import some
from drivelab.publish.pages import page, strip
from drivelab.report.numbers import names, number

MOST_RANKED = 12
"""Results that the first page shows of a test; the pages of the models have all."""
MOST_TESTS = 40
"""Groups of comparable results that the first page shows, those with most results first."""
_SHORT = 4
Entry = Mapping[str, Any]


def index_page(
    title: str, studies: Sequence[Mapping[str, Any]], entries: Sequence[Entry], groups: Mapping[str, Mapping[str, str]]
) -> str:
    """Return the HTML of the first page."""
    tests = _tests(entries, groups)
    return page(
        "index.html.j2",
        title,
        {
            "models": _models(entries),
            "tests": tests[:MOST_TESTS],
            "more_tests": max(0, len(tests) - MOST_TESTS),
            "studies": [_study(study) for study in studies],
            "recordings": number(sum(study["recordings"] for study in studies)),
        },
    )


def _models(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    rows = []
    for of_model in grouped(entries, lambda entry: str(entry["model"]["id"])).values():
        model = of_model[0]["model"]
        shared = [label for label in (limits.VIRTUAL, limits.REDUCED, limits.IMPORTED)
                  if all(label in entry["labels"] for entry in of_model)]  # fmt: skip
        rows.append(
            {"id": model["id"], "name": model["name"], "details": model["details"], "limits": shared,
             "firmware": _some({entry["firmware"] for entry in of_model}),
             "protocols": sorted({entry["protocol"] for entry in of_model}),
             "drives": len({(entry["serial"] or entry["drive"]) for entry in of_model}),
             "studies": len({entry["study"] for entry in of_model}),
             "recordings": sum(entry["recordings"] for entry in of_model),
             "latest": max(entry["date"] for entry in of_model)}
        )  # fmt: skip
    return sorted(rows, key=lambda row: (row["name"].casefold(), row["details"], row["id"]))


def _tests(entries: Sequence[Entry], groups: Mapping[str, Mapping[str, str]]) -> list[dict[str, Any]]:
    """Return the groups with their results, best first, those with most results first."""
    known = (entry for entry in entries if entry["key"]["value"] is not None)
    by_value = grouped(known, lambda entry: (entry["group"], entry["key"]["cell_label"], entry["key"]["metric"]))
    tests: list[dict[str, Any]] = []
    for (group, *_), rows in by_value.items():
        key = rows[0]["key"]
        rows = sorted(rows, key=lambda row: (row["key"]["value"] * (1 if key["kind"] == "time" else -1), row["id"]))
        shown = rows[:MOST_RANKED]
        common = [label for label in rows[0]["labels"] if all(label in row["labels"] for row in rows)]
        top = [row["key"]["spread_high"] or 0.0 for row in shown] + [row["key"]["value"] for row in shown]
        tests.append(
            {"id": f"test-{group}-{len(tests)}", "protocol": rows[0]["protocol"], "key": key, "count": len(rows),
             "plan": groups[group]["steps"], "reduced": groups[group]["reduced"] == "yes",
             "labels": common, "lower": key["kind"] == "time", "more": len(rows) - len(shown),
             "rows": [{**row, "shown": number(row["key"]["value"]),
                       "labels": [label for label in row["labels"] if label not in common],
                       "strip": strip(row["key"]["value"], row["key"]["spread_low"], row["key"]["spread_high"],
                                      top=max(top))} for row in shown]}
        )  # fmt: skip
    return sorted(tests, key=lambda test: (-test["count"], test["protocol"], test["id"]))


def _study(study: Mapping[str, Any]) -> dict[str, Any]:
    licence = study["license"]
    return {**study, "short": study["sha256"][:12], "licence": "" if licence.startswith("No licence") else licence}


def _some(several: set[str]) -> str:
    known = sorted(filter(None, several))
    return some(known, _SHORT) if len(known) > _SHORT else names(known) if known else ""
