"""The report of many drives: filter, names, pages on demand, WCAG."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from accessibility import violations
from many_drives import many_drives
from playwright.sync_api import expect

from drivelab.report.content import build
from drivelab.report.html import render


@pytest.mark.parametrize("width", [1280, 390])
def test_many_drives_are_filtered_opened_and_meet_wcag_2_2_aa(
    show: Callable[..., Any], tmp_path: Path, width: int
) -> None:
    study = {"name": "many", "title": "Many", "basis": "d1", "margin_pct": 5.0}
    file = tmp_path / "report.html"
    file.write_text(render(build(many_drives(9), study, [], [], None)), encoding="utf-8")
    shown = show(file, viewport={"width": width, "height": 900})
    page = shown.page
    assert page.evaluate("document.documentElement.scrollWidth") == width
    rows = page.locator("#verdict-table tbody tr:visible")
    page.get_by_label("Filter the rows: Headline tests").fill("d7")
    assert rows.get_by_role("link").all_inner_texts() == ["d7", "d7"]
    rows.first.get_by_role("link").click()
    expect(page.locator("#d7-pts-iops")).to_be_in_viewport()
    expect(page.locator("#d8-pts-iops")).not_to_be_attached()
    assert violations(page) == []
    expect(page.locator("#d8-pts-iops")).to_be_attached()
    shown.check()
