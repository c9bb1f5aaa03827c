"""The page of `drivelab trend` on a desktop and on a phone, also with hostile names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from accessibility import LOOKS, check
from made_archives import Result, made_archives, over_dates
from playwright.sync_api import Page, expect

from drivelab.trend.page import write
from drivelab.trend.trend import Terms, trend

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
STEPPED = [*over_dates([1 - 0.07 * (day > 11) + 0.003 * (day % 3) for day in range(20)]),
           Result(date="2026-02-01", reduced=True)]  # fmt: skip
FIRMWARES = [
    Result(drive, HOSTILE, firmware, HOSTILE, speed * own, 3, f"2026-0{month}-01", conditions={"kernel": f"6.{month}"})
    for month, (firmware, speed) in enumerate([("F1", 1.0), (HOSTILE, 0.9), ("F3", 0.91)], start=1)
    for drive, own in [("a", 1.0), ("b", 1.3 + month / 100), ("c", 0.8)]
]


@pytest.mark.parametrize(
    ("name", "results", "by"), [("dates", STEPPED, "date"), ("drives", FIRMWARES, "firmware")], ids=["dates", "drives"]
)
def test_a_trend_fits_a_phone_and_meets_wcag_2_2_aa(
    open_page: Callable[..., Page], tmp_path: Path, name: str, results: list[Result], by: str
) -> None:
    file = tmp_path / "trend.html"
    write(trend(made_archives(tmp_path, *results), Terms(by=by)), file)
    for look in LOOKS:
        page = open_page(file, **look)
        charts = page.locator("picture img")
        expect(charts).to_have_count(2)
        shown = charts.first.evaluate("image => ({natural: image.naturalWidth, width: image.width})")
        assert shown["width"] > 0.7 * shown["natural"], "the text of a chart is legible"
        check(page, f"trend-{name}", look)
