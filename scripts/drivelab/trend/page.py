"""A trend as one page without scripts: a chart and a table for each test."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.analysis.verdict import direction
from drivelab.core.units import format_percentage
from drivelab.figures.base.paper import drawn_for
from drivelab.figures.base.style import WIDTH_IN, svg
from drivelab.figures.kinds.drives.trend_line import trend_line
from drivelab.report.html import page, picture
from drivelab.report.numbers import capital, number, unit_of
from drivelab.report.view import Figure
from drivelab.trend.series import Group
from drivelab.trend.text import (
    change_words,
    differing_words,
    headline,
    method_words,
    percent_words,
    since_words,
    test_words,
)
from drivelab.trend.trend import Test, Trend

MOST_CHARTS = 60
"""Tests with a chart, those that changed first; all are in the table."""
_WIDTHS_IN = (WIDTH_IN, 3.8)
"""Width of a chart on a desktop, and on a phone, where the wide one would be too small to read."""


def write(found: Trend, output: Path) -> None:
    """Write the page as one file."""
    first = sorted(found.shown, key=lambda test: (not test.changes, not direction(test.outcome)))[:MOST_CHARTS]
    sections = [
        {
            "group": group,
            "differing": list(differing_words(group)),
            "tests": [_of_page(test, group, found, chart=test in first) for test in found.shown
                      if test.group == group.name],
        }
        for group in found.groups
    ]  # fmt: skip
    values = {
        "found": found, "headline": headline(found), "order": found.terms.by, "method": method_words(found),
        "sections": sections, "without_chart": max(0, len(found.shown) - MOST_CHARTS),
    }  # fmt: skip
    html = page("trend.html.j2", values, Path(__file__).parent / "templates")
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(html, encoding="utf-8")


def _of_page(test: Test, group: Group, found: Trend, *, chart: bool) -> dict[str, Any]:
    unit = unit_of(test.key.metric, test.key.unit)
    return {
        "words": test_words(test),
        "label": test.key.cell_label,
        "outcome": capital(test.outcome),
        "tone": {"better": "good", "worse": "bad"}.get(direction(test.outcome), ""),
        "because": test.because,
        "since": since_words(test),
        "changes": [capital(change_words(change)) for change in test.changes],
        "pictures": [_picture(test, group, found, width_in) for width_in in _WIDTHS_IN] if chart else [],
        "points": [
            {"name": point.point, "value": f"{number(point.value)} {unit}".strip(),
             "interval": "" if point.low is None else f"{number(point.low)} to {number(point.high)}",
             "delta": "" if point.delta_pct is None
             else percent_words(point.delta_pct, point.delta_low_pct, point.delta_high_pct) + ", paired" * point.paired,
             "outcome": point.outcome or "baseline",
             "notes": [*point.faults, *(doubt for doubt in point.doubts if doubt not in point.faults)],
             "recordings": point.recordings}
            for point in test.points
        ],
    }  # fmt: skip


def _picture(test: Test, group: Group, found: Trend, width_in: float) -> Figure:
    names = [point.point for point in test.points]
    starts = [names.index(change.point) for change in test.changes if change.point in names]
    levels = [math.nan] * len(names)
    for start, end in zip([0, *starts], [*starts, len(names)], strict=True):
        part = [math.log(point.value) for point in test.points[start:end]]
        levels[start:end] = [math.exp(math.fsum(part) / len(part))] * len(part)
    points = pd.DataFrame({
        "point": names,
        "value": [point.value for point in test.points],
        "low": [math.nan if point.low is None else point.low for point in test.points],
        "high": [math.nan if point.high is None else point.high for point in test.points],
        "recordings": [len(point.recordings) for point in test.points],
        "level": levels if starts else math.nan,
    })  # fmt: skip
    with drawn_for(width_in):
        figure = trend_line(
            points,
            [(change.point, f"{format_percentage(change.change_pct, signed=True)} %") for change in test.changes
             if change.point in names],
            title=test_words(test), subject=f"{found.model}, {group.protocol}", metric=test.key.metric,
            unit=unit_of(test.key.metric, test.key.unit), baseline=test.baseline, margin_pct=found.terms.margin_pct,
            labels=(group.facets["reduced"] == "yes", group.facets["virtual"] == "yes",
                    "virtual" if "virtual" in group.facets["clock"] else "wall"),
        )  # fmt: skip
    return picture({"drive": None, "measurement": None, "name": "trend", "title": test_words(test), "caption": "",
                    "svg": svg(figure)})  # fmt: skip
