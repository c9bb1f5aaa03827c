"""What all pages of a site share (templates, style, script, policy), and its first page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from drivelab.analysis import limits
from drivelab.core.grouping import grouped
from drivelab.core.units import some
from drivelab.report.html import REPORT_TEMPLATES, own_script, packed_json, policy
from drivelab.report.numbers import names, number

_TEMPLATES = Path(__file__).parent / "templates"

_GRAVE = frozenset({limits.TAINTED, limits.NOT_STEADY, limits.NOT_PURGED})


def page(template: str, title: str, values: Mapping[str, Any]) -> str:
    """Return the HTML of a page with all texts escaped, the style of reports, and one script of drivelab."""
    script = own_script(("report.js",)) + (_TEMPLATES / "site.js").read_text(encoding="utf-8")
    style = (REPORT_TEMPLATES / "report.css").read_text(encoding="utf-8")
    style += (_TEMPLATES / "site.css").read_text(encoding="utf-8")
    environment = Environment(
        loader=FileSystemLoader([_TEMPLATES, REPORT_TEMPLATES]), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters.update(packed_json=packed_json, exact=_exact)
    return environment.get_template(template).render(
        site=title,
        style=Markup(style),  # drivelab's files, no data in them
        script=Markup(script),  # likewise
        policy=policy(script),
        grave=_GRAVE,
        **{"root": "", "proofs": [], **values},
    )


def _exact(value: float | None) -> str:
    """Return a number with all digits, for sorting; empty for a missing one."""
    return "" if value is None else repr(float(value)).removesuffix(".0")


def strip(
    value: float, low: float | None, high: float | None, others: Iterable[float] = (), top: float = 0.0
) -> dict[str, Any]:
    """Return the places, 0 to 100, of dots on an axis from 0 to `top`, or to the largest value if that is larger.

    `value` is the dot that stands out, `low` to `high` its spread. Without positive values all places are 0.
    """
    others = list(others)
    top = max(*others, value, high or 0.0, top)
    scale = 100 / top if top > 0 else 0.0
    ends = [round(max(0.0, end) * scale, 2) for end in (low, high) if end is not None]
    return {
        "dots": sorted({round(max(0.0, number) * scale, 1) for number in others}),
        "at": round(max(0.0, value) * scale, 2),
        "span": ends if len(ends) == 2 else [],
    }


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
