"""Use of the report: navigation, sorting, downloads, hovering, origins of numbers, print, dark mode."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from accessibility import FAINT, LEAST_CONTRAST, LEAST_CONTRAST_LARGE, violations
from playwright.sync_api import Locator, Page, expect

FIRST_SCREEN = 900  # px from the top
PHONE = {"width": 360, "height": 740}

# Position of a chart's point in the window, and its values.
POINT = """(card) => {
  const chart = charts.get(card);
  const [panel] = chart.panels;
  const {mark, point, px, py} = chart.points(panel).find((one) => one.mark.key !== undefined && !one.mark.rule);
  const at = new DOMPoint(px, py).matrixTransform(chart.svg.getScreenCTM());
  return {left: at.x, top: at.y, x: mark.x[point], y: mark.y[point], name: mark.name};
}"""

# The span of a panel's x axis that is seen, in its values.
SEEN = """(card) => {
  const chart = charts.get(card);
  const panel = chart.panels.find((one) => one.x);
  return (panel.seen[0] ?? [panel.box[0], panel.box[2]]).map((px) => chart.value(panel, "x", px));
}"""

# What a stranger's picture becomes: nothing in it may run, fetch or lead anywhere.
HOSTILE = """() => {
  const text = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
      onload="alert(1)" viewBox="0 0 9 9">
    <script>alert(1)</script><foreignObject><b>x</b></foreignObject><a href="https://example.org"><text>t</text></a>
    <image xlink:href="https://example.org/x.png"/><use xlink:href="https://example.org/x.svg#a"/><use xlink:href="#a"/>
    <path d="M0 0" style="fill: url(https://example.org/x)" onclick="alert(1)" clip-path="url(#a)"/></svg>`;
  return clean(new DOMParser().parseFromString(text, "image/svg+xml").documentElement).outerHTML;
}"""

# Repeats the columns of the headline table's last drive twice, and measures the width.
FOUR_DRIVES = """(table) => {
  for (const row of table.rows) {
    const [delta, value] = [row.cells[1], row.cells[row.cells.length - 1]];
    for (let more = 0; more < 2; more++) row.append(value.cloneNode(true), delta.cloneNode(true));
  }
  return {columns: table.rows[0].cells.length, table: table.scrollWidth, box: table.closest(".scroll").clientWidth};
}"""


def drawn(page: Page, title: str) -> Locator:
    """Return the card of a figure by its title, after its chart has replaced the picture."""
    card = page.locator("figure", has_text=title).first.locator(".card")
    card.scroll_into_view_if_needed()
    expect(card).to_have_class(re.compile(r"\bdrawn\b"))
    return card


def is_clear(picture: Locator) -> bool:
    """Return whether a picture is invisible."""
    return bool(picture.evaluate("one => getComputedStyle(one).opacity === '0' || "
                                 "getComputedStyle(one).clipPath !== 'none'"))  # fmt: skip


def in_view(section: Locator) -> None:
    expect(section).to_be_in_viewport()


def texts_and_values(table: Locator, column: int) -> list[tuple[str, float | None]]:
    fields = table.locator(f"tbody tr > :nth-child({column + 1})")
    return [
        (text, None if value is None else float(value))
        for text, value in fields.evaluate_all(
            "all => all.map((one) => [one.textContent.trim(), one.dataset.v ?? null])"
        )
    ]


def column_with_numbers(page: Page) -> tuple[Locator, int]:
    """Return the first table and column whose numeric order differs from the text order."""
    for table in page.locator("main table:visible").all():
        for column in range(table.locator("thead th").count()):
            texts = texts_and_values(table, column)
            values = [value for _, value in texts if value is not None]
            as_text = [value for text, value in sorted(texts, key=lambda pair: pair[0]) if value is not None]
            if len(set(values)) > 2 and as_text != sorted(values) and values != sorted(values):
                return table, column
    raise AssertionError("no table of the report distinguishes sorting by number from sorting by text")


def test_the_report_loads_without_errors_and_fetches_nothing(shown: Any) -> None:
    expect(shown.page.locator("main h2").first).to_be_visible()
    expect(shown.page.locator("button.sort").first).to_be_attached()


def test_every_chart_is_drawn_in_the_place_of_its_picture(shown: Any) -> None:
    cards = shown.page.locator(".card:has(.values)")
    assert cards.count() > 0
    for card in cards.all():
        card.scroll_into_view_if_needed()
        expect(card).to_have_class(re.compile(r"\bdrawn\b"))
        expect(card.locator(".plot svg")).to_be_visible()
        picture = card.locator("img").bounding_box()  # kept for screen readers
        assert picture is None or max(picture["width"], picture["height"]) <= 1 or is_clear(card.locator("img"))


def test_the_keyboard_skips_the_header_and_follows_the_contents(shown: Any) -> None:
    page = shown.page
    page.keyboard.press("Tab")
    skip = page.locator(":focus")
    expect(skip).to_have_attribute("href", re.compile("^#"))
    in_view(skip)
    target = page.locator(str(skip.get_attribute("href")))
    page.keyboard.press("Enter")
    link = page.locator('nav a[href^="#"]').nth(3)
    link.focus()
    page.keyboard.press("Enter")  # at once: the first jump must not stop the second
    in_view(page.locator(str(link.get_attribute("href"))))
    expect(target).not_to_be_in_viewport()


def test_every_jump_reaches_its_section(shown: Any) -> None:
    """The contents scroll automatically, which stops a smooth scroll of the page in Chromium."""
    page = shown.page
    links = page.locator('nav a[href^="#"]')
    assert links.count() > 4
    for place in (3, links.count() - 1, 2, links.count() - 2, 3):
        links.nth(place).focus()
        page.keyboard.press("Enter")
    in_view(page.locator(str(links.nth(3).get_attribute("href"))))
    links.last.click()
    in_view(page.locator(str(links.last.get_attribute("href"))))


def test_tables_are_sorted_by_number(shown: Any) -> None:
    table, column = column_with_numbers(shown.page)
    heading = table.locator("thead th").nth(column)
    before = [value for _, value in texts_and_values(table, column)]
    numbers = sorted(value for value in before if value is not None)
    button = heading.locator("button.sort")
    for state, wanted in (("ascending", numbers), ("descending", numbers[::-1])):
        button.focus()
        shown.page.keyboard.press("Enter")
        expect(heading).to_have_attribute("aria-sort", state)
        assert [value for _, value in texts_and_values(table, column) if value is not None] == wanted
    button.click()
    assert [value for _, value in texts_and_values(table, column)] == before


def test_a_table_is_downloaded_in_full_precision(shown: Any) -> None:
    table, column = column_with_numbers(shown.page)
    with shown.page.expect_download() as download:
        table.locator("xpath=ancestor::div[contains(@class, 'table')][1]").locator("button.csv").click()
    text = Path(download.value.path()).read_text(encoding="utf-8")
    _, *rows = csv.reader(io.StringIO(text))
    wanted = [value for _, value in texts_and_values(table, column)]
    assert [
        float(row[column]) if value is not None else None for row, value in zip(rows, wanted, strict=True)
    ] == wanted


def test_the_tables_of_the_study_are_downloads(shown: Any, study: Path) -> None:
    files = study / "results/tables"
    for name in ("summary", "deltas", "steady_state"):
        link = shown.page.locator(f'.downloads a[download="{name}.parquet"]')
        link.scroll_into_view_if_needed()
        with shown.page.expect_download() as download:
            link.click()
        rows = sum(len(pd.read_parquet(path)) for path in files.rglob(f"{name}.parquet"))
        assert len(pd.read_parquet(download.value.path())) == rows > 0


def test_hovering_a_point_shows_the_value_of_the_table(shown: Any, study: Path) -> None:
    card = drawn(shown.page, "Steady-state convergence")
    point = card.evaluate(POINT)
    shown.page.mouse.move(point["left"] - 1, point["top"])
    shown.page.mouse.move(point["left"], point["top"])
    tip = card.locator(".tip")
    expect(tip).to_be_visible()
    match = re.search(r"I/O rate: ([\d,.]+) IOPS", tip.inner_text())
    assert match, tip.inner_text()
    cells = pd.concat([pd.read_parquet(path) for path in (study / "results/tables").glob("*/pts-iops/*/cells.parquet")])
    of_round = cells[(cells["kind"] == "loop") & (cells["round"] == point["x"])]["iops"]
    value = float(match[1].replace(",", ""))
    assert any(value == pytest.approx(iops, rel=5.1e-5) for iops in of_round), (value, list(of_round))


def test_keys_lead_from_point_to_point_and_say_them(shown: Any) -> None:
    card = drawn(shown.page, "Steady-state convergence")
    card.locator(".plot").focus()
    tips = []
    for _ in range(3):
        shown.page.keyboard.press("ArrowRight")
        tips.append(card.locator(".tip").inner_text())
    assert [text.split("\n")[1] for text in tips] == ["Round: 1", "Round: 2", "Round: 3"]
    shown.page.keyboard.press("ArrowDown")
    assert card.locator(".tip").inner_text() != tips[-1], "another series, or its nearest round"
    expect(card.locator(".tip")).to_have_role("status")


def test_a_name_of_the_legend_switches_its_series_off_and_on(shown: Any) -> None:
    card = drawn(shown.page, "Steady-state convergence")
    key = card.evaluate("card => charts.get(card).panels[0].marks.find((one) => one.key !== undefined && one.x).key")
    entry, count = (
        card.locator(f'svg [data-k="{key}"]').last,
        "card => charts.get(card).points(charts.get(card).panels[0]).length",
    )
    before = card.evaluate(count)
    entry.click()
    assert card.evaluate(count) < before
    entry.click()
    assert card.evaluate(count) == before


def test_a_box_is_zoomed_and_the_button_shows_the_whole(shown: Any) -> None:
    card = drawn(shown.page, "Steady-state convergence")
    whole, box = card.evaluate(SEEN), card.locator("svg").bounding_box()
    assert box is not None
    mouse = shown.page.mouse
    mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
    mouse.down()
    mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.6 * box["height"], steps=3)
    mouse.up()
    low, high = card.evaluate(SEEN)
    assert whole[0] < low < high < whole[1]
    card.locator("button").click()
    assert card.evaluate(SEEN) == whole


def test_time_axes_of_a_recording_are_zoomed_and_marked_together(shown: Any) -> None:
    card = drawn(shown.page, "Saturation against time")
    drawn(shown.page, "Latency over time")
    linked = card.evaluate("""(card) => {
      const own = charts.get(card);
      const alike = (one) => one !== own && one.card.dataset.recording === card.dataset.recording;
      const others = [...charts.values()].filter((one) => alike(one)
        && one.panels.some((panel) => panel.x?.time));
      const panel = own.panels.find((one) => one.x.time), [x0, y0, x1, y1] = panel.box;
      own.zoomBox(panel, [x0 + (x1 - x0) / 4, y0, x0 + (x1 - x0) / 2, y1]);
      own.show({panel, ...own.points(panel)[0]});
      return others.map((one) => [one.panels.some((panel) => panel.seen[0]), /^M/.test(one.now.getAttribute("d"))]);
    }""")
    assert linked
    assert all(zoomed and marked for zoomed, marked in linked)


def test_a_strangers_picture_neither_runs_nor_fetches_anything(show: Callable[..., Any]) -> None:
    shown = show()
    made = shown.page.evaluate(HOSTILE)
    assert all("has been blocked" in line for line in shown.complaints), "the policy speaks as well"
    assert [url for url in shown.requests if "example.org" in url] == []
    assert 'href="#a"' in made
    assert 'clip-path="url(#a)"' in made
    for word in ("script", "alert", "example.org", "foreignObject", "<a "):
        assert word not in made


def test_a_button_shows_the_origin_of_a_number(shown: Any, study: Path) -> None:
    page = shown.page
    button = page.locator("section.page button.why:visible").first
    button.focus()
    page.keyboard.press("Enter")
    dialog = page.locator("dialog#provenance")
    expect(dialog).to_be_visible()
    expect(dialog.locator("dd").first).to_be_visible()
    places = [text for text in dialog.locator("code").all_text_contents() if "/" in text]
    files = [path for text in places for path in study.glob(f"results/recordings/{text.split()[0].strip('/')}*")]
    named = [Path(match) for text in places for match in re.findall(r"\S*results/recordings/[^\s)]+", text)]
    assert files or any((study / path).exists() for path in named), places
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(button).to_be_focused()


def test_the_report_meets_wcag_2_2_aa(show: Callable[..., Any]) -> None:
    page = show().page
    drawn(page, "Steady-state convergence")
    assert violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(show: Callable[..., Any], scheme: str) -> None:
    page = show(color_scheme=scheme).page
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    assert page.evaluate(FAINT, [LEAST_CONTRAST, LEAST_CONTRAST_LARGE]) == []


def test_the_headline_table_of_four_drives_fits_its_box(shown: Any) -> None:
    """The report has two drives, so the test adds columns for two more."""
    page = shown.page
    widths = page.locator("#verdict-table").evaluate(FOUR_DRIVES)
    assert widths["columns"] == 2 + 1 + 2 * 3
    assert widths["table"] <= widths["box"]


def test_no_table_scrolls_sideways_on_a_desktop(shown: Any) -> None:
    page = shown.page
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    assert page.locator(".scroll").evaluate_all(
        "all => all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent.slice(0, 60))"
    ) == []  # fmt: skip


@pytest.mark.parametrize("opened", [False, True], ids=["as it loads", "all unfolded"])
def test_a_phone_need_not_scroll_sideways(show: Callable[..., Any], opened: bool) -> None:
    shown = show(viewport=PHONE)
    page = shown.page
    if opened:
        page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    drawn(page, "Steady-state convergence")
    too_wide = page.evaluate("document.documentElement.scrollWidth") - PHONE["width"]
    assert too_wide <= 0
    assert shown.complaints == []


def test_on_a_phone_the_contents_are_one_touch_away(show: Callable[..., Any]) -> None:
    page = show(viewport=PHONE, has_touch=True).page
    page.locator("section.page").last.scroll_into_view_if_needed()
    page.locator("a.to-contents").tap()
    link = page.locator('nav a[href^="#"]', has_text="op28").first
    expect(link).to_be_visible()
    in_view(page.locator("nav"))
    target = str(link.get_attribute("href"))
    link.tap()
    in_view(page.locator(target).locator("h2"))


def test_a_page_leads_to_the_comparison_of_its_measurement(shown: Any) -> None:
    link = shown.page.get_by_role("link", name="pts-iops: drives compared").first
    link.click()
    in_view(shown.page.locator("#comparison > h4", has_text="pts-iops").first)


def test_the_first_screen_has_sentence_chart_table_and_labels(shown: Any) -> None:
    """In this order, and the comparison before any page of a drive."""
    page = shown.page
    parts = ("#verdict .lead", "#verdict figure", "#at-a-glance", ".badges", "#comparison", "section.page")
    tops = [box["y"] if (box := page.locator(part).first.bounding_box()) else None for part in parts]
    assert None not in tops
    assert tops[1] <= FIRST_SCREEN
    assert tops == sorted(tops), dict(zip(parts, tops, strict=True))
    badge = page.locator(".badge").first
    expect(badge.locator("p").first).to_be_hidden()
    badge.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(badge.locator("p").first).to_be_visible()


def test_a_table_that_scrolls_sideways_says_so(show: Callable[..., Any]) -> None:
    page = show(viewport=PHONE).page
    expect(page.locator(".sideways:visible").first).to_be_visible()  # shown with the first frame
    silent = page.locator(".scroll:visible").evaluate_all(
        "all => all.filter((one) => one.scrollWidth > one.clientWidth + 1 && one.previousElementSibling.hidden)"
        ".map((one) => one.textContent.slice(0, 60))"
    )
    assert silent == []


def test_a_wide_window_has_two_columns_of_charts(show: Callable[..., Any]) -> None:
    columns = "one => getComputedStyle(one).gridTemplateColumns.split(' ').length"
    for width, wanted in ((1100, 2), (1099, 1)):
        page = show(viewport={"width": width, "height": 900}).page
        assert page.locator(".figures:has(> :nth-child(2))").first.evaluate(columns) == wanted


def test_a_print_has_the_pictures(shown: Any) -> None:
    page = shown.page
    card = drawn(page, "Steady-state convergence")
    page.emulate_media(media="print")
    expect(card.locator("img")).to_be_visible()
    expect(card.locator(".plot")).to_be_hidden()
    printed = page.pdf()
    assert printed.startswith(b"%PDF-")


def test_the_report_is_readable_without_scripts(show: Callable[..., Any]) -> None:
    page = show(java_script_enabled=False).page
    expect(page.locator("main table").first).to_be_visible()
    picture = page.locator("figure img").first
    expect(picture).to_be_visible()
    assert str(picture.get_attribute("alt")).strip()
