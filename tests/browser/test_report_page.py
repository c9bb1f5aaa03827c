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
from playwright.sync_api import Locator, Page, expect

PICTURES = Path(__file__).resolve().parents[2] / "build/test-artefacts/browser"
LEAST_CONTRAST = 4.5  # WCAG 2.1, success criterion 1.4.3 at level AA
LEAST_CONTRAST_LARGE = 3.0
PHONE = {"width": 360, "height": 740}

# Texts with too little contrast against the first opaque background.
FAINT = """([least, leastLarge]) => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => {
    const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const [x, y, z] = [r, g, b].map((c) => linear(c / 255));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (node) => {
    for (let one = node; one; one = one.parentElement) {
      const colour = parse(getComputedStyle(one).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
      if (colour[3] > 0) return null;
    }
    return matchMedia("(prefers-color-scheme: dark)").matches ? [0, 0, 0] : [255, 255, 255];
  };
  const faint = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || node.closest("script, style, svg")) continue;
    if (!node.checkVisibility()) continue;
    const style = getComputedStyle(node), behind = ground(node);
    if (!behind) continue;
    const [a, b] = [light(parse(style.color)), light(behind)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const px = parseFloat(style.fontSize), large = px >= 24 || (px >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? leastLarge : least)) {
      faint.add(`${ratio.toFixed(2)}: <${node.localName} class="${node.className}"> ${style.color} on ${behind}`);
    }
  }
  return [...faint];
}"""

# Position of a chart's point in the window, and its values.
POINT = """(card) => {
  const plot = card.querySelector(".js-plotly-plot");
  const place = plot.data.findIndex((one) => one.showlegend && one.x.length > 2 && one.y[0] !== null);
  const {xaxis, yaxis} = plot._fullData[place];
  const [x, y] = [xaxis, yaxis].map((key) => plot._fullLayout[key[0] + "axis" + key.slice(1)]);
  const box = plot.getBoundingClientRect(), scale = box.width / plot._fullLayout.width;
  const trace = plot.data[place];
  return {
    left: box.left + scale * (x._offset + x.c2p(trace.x[0])), top: box.top + scale * (y._offset + y.c2p(trace.y[0])),
    x: trace.x[0], y: trace.y[0], name: trace.name,
  };
}"""

# Whether a chart is too wide for a phone.
WIDE = """async (card) => isWide(JSON.parse(await unpacked(card.querySelector(".chart").textContent)))"""

# Points of a chart whose face and edge both lack contrast against the page or a band.
LOST = """(card, least) => {
  const parse = (text) => {
    const hex = /^#(..)(..)(..)$/.exec(text);
    return hex ? hex.slice(1).map((one) => parseInt(one, 16)) : text.match(/[\\d.]+/g).map(Number);
  };
  const light = (text) => {
    const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const [x, y, z] = parse(text).slice(0, 3).map((c) => linear(c / 255));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const plot = card.querySelector(".js-plotly-plot");
  const behind = [getComputedStyle(card).backgroundColor, ...plot._fullLayout.shapes.map((one) => one.fillcolor)];
  const points = plot._fullData.filter((one) => one.mode === "markers");
  if (!points.length) return ["no points"];
  return points.flatMap(({name, marker}) => behind.flatMap((ground) => {
    const best = Math.max(...[marker.color, marker.line.color].map((one) => contrast(one, ground)));
    return best < least ? [`${best.toFixed(2)}: ${name} on ${ground}`] : [];
  }));
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


def test_no_escaped_character_is_visible(shown: Any) -> None:
    """The lines above a chart are plain texts: escapes that Plotly would decode must not remain."""
    page = shown.page
    drawn(page, "Steady-state convergence")
    read = page.evaluate("""() => {
      const lines = headed({title: {text: "<b>Load</b><br><span>the host's a &lt; b &amp; c</span>"}}).lines;
      return [...lines, document.body.innerText];
    }""")
    assert read[:2] == ["Load", "the host's a < b & c"]
    assert re.findall(r"&(?:#\w+|amp|lt|gt|quot);", read[2]) == []


def test_every_chart_replaces_its_picture(shown: Any) -> None:
    cards = shown.page.locator(".card:has(.chart)")
    assert cards.count() > 0
    for card in cards.all():
        card.scroll_into_view_if_needed()
        expect(card).to_have_class(re.compile(r"\bdrawn\b"))
        expect(card.locator(".plot .main-svg").first).to_be_visible()
        picture = card.locator("img").bounding_box()  # screen readers still read its text
        assert picture is None or max(picture["width"], picture["height"]) <= 1 or is_clear(card.locator("img"))


def test_a_click_in_the_contents_leads_to_each_section(shown: Any) -> None:
    links = shown.page.locator('nav a[href^="#"]')
    assert links.count() > 4
    for link in (links.nth(2), links.last, links.first):
        target = link.get_attribute("href")
        link.click()
        in_view(shown.page.locator(str(target)))


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


def test_a_filter_that_nothing_matches_says_so(shown: Any) -> None:
    page = shown.page
    box = page.locator("#contents input")
    box.fill("no such test")
    message = page.locator("#contents [aria-live]")
    assert message.inner_text() == "No test or section matches."
    box.fill("")
    assert message.inner_text() == ""


def test_every_jump_reaches_its_section(shown: Any) -> None:
    """The contents scroll automatically, which stops a smooth scroll of the page in Chromium."""
    page = shown.page
    links = page.locator('nav a[href^="#"]')
    for place in (3, links.count() - 1, 2, links.count() - 2, 3):
        links.nth(place).focus()
        page.keyboard.press("Enter")
    in_view(page.locator(str(links.nth(3).get_attribute("href"))))


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
    for name in ("summary", "cells", "latency_bins"):
        link = shown.page.locator(f'.downloads a[download="{name}.parquet"]')
        link.scroll_into_view_if_needed()
        with shown.page.expect_download() as download:
            link.click()
        rows = sum(len(pd.read_parquet(path)) for path in files.rglob(f"{name}.parquet"))
        assert len(pd.read_parquet(download.value.path())) == rows > 0


def test_hovering_a_point_shows_the_value_of_the_table(shown: Any, study: Path) -> None:
    card = drawn(shown.page, "Steady-state convergence")
    point = card.evaluate(POINT)
    shown.page.mouse.move(point["left"] - 3, point["top"])
    shown.page.mouse.move(point["left"], point["top"])
    label = card.locator(".hoverlayer .hovertext").first
    expect(label).to_be_visible()
    match = re.search(r"I/O rate: ([\d,.]+) IOPS", str(label.text_content()))
    assert match, label.text_content()
    cells = pd.concat([pd.read_parquet(path) for path in (study / "results/tables").glob("*/pts-iops/*/cells.parquet")])
    of_round = cells[(cells["kind"] == "loop") & (cells["round"] == point["x"])]["iops"]
    value = float(match[1].replace(",", ""))
    assert any(value == pytest.approx(iops, rel=5.1e-5) for iops in of_round), (value, list(of_round))


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(show: Callable[..., Any], scheme: str) -> None:
    page = show(color_scheme=scheme).page
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    assert page.evaluate(FAINT, [LEAST_CONTRAST, LEAST_CONTRAST_LARGE]) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_points_of_a_chart_have_enough_contrast(show: Callable[..., Any], scheme: str) -> None:
    card = drawn(show(color_scheme=scheme).page, "Comparison of the drives")
    assert card.evaluate("card => card.querySelector('.js-plotly-plot')._fullLayout.shapes.length") > 0
    assert card.evaluate(LOST, LEAST_CONTRAST_LARGE) == []


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


def test_a_phone_keeps_the_pictures_of_wide_charts(show: Callable[..., Any]) -> None:
    page = show(viewport=PHONE).page
    kept = 0
    for card in page.locator(".card:has(.chart)").all():
        is_wide = card.evaluate(WIDE)
        card.scroll_into_view_if_needed()
        if is_wide:
            page.wait_for_function("(card) => wide.has(card)", arg=card.element_handle())
            expect(card).not_to_have_class(re.compile(r"\bdrawn\b"))
            expect(card.locator("img")).to_be_visible()
            assert card.evaluate("(one) => one.style.minHeight") == ""
            kept += 1
        else:
            expect(card).to_have_class(re.compile(r"\bdrawn\b"))
    assert kept > 0


@pytest.mark.parametrize(
    ("layout", "is_wide"),
    [
        ({"xaxis": {"domain": [0, 1]}, "yaxis": {"ticktext": ["1", "2"]}}, False),
        ({"xaxis": {"domain": [0, 0.4]}, "xaxis2": {"domain": [0.6, 1]}}, True),
        ({"xaxis": {"domain": [0, 1]}, "xaxis2": {"domain": [0, 1]}}, False),
        ({"xaxis": {"title": {"text": "a"}}, "xaxis2": {"title": {"text": "b"}}}, True),
        ({"xaxis": {"title": {"text": "a"}}, "xaxis2": {"title": {"text": "b"}, "overlaying": "x"}}, False),
        ({"xaxis": {"domain": [0, 1]}, "yaxis": {"ticktext": ["RND 4KiB-64KiB mix 0/100"]}}, True),
        ({"xaxis": {"domain": [0, 1]}, "margin": {"r": 200}}, True),
    ],
)
def test_a_chart_is_wide_by_its_panels_and_names(shown: Any, layout: dict[str, Any], is_wide: bool) -> None:
    assert shown.page.evaluate("(layout) => isWide({layout})", layout) is is_wide


def test_no_toolbar_covers_a_chart(shown: Any) -> None:
    card = drawn(shown.page, "Steady-state convergence")
    card.locator(".plot .main-svg").first.hover()
    expect(card.locator(".modebar-btn")).to_have_count(0)


@pytest.mark.parametrize(("ground", "turned"), [("#ffffff", False), ("#1c2128", True)])
def test_a_colour_map_starts_at_the_background(shown: Any, ground: str, turned: bool) -> None:
    """Few counts are pale on a light page and dark on a dark page, but still visible."""
    scale = [[0, "#b5de2b"], [0.5, "#1f9e89"], [0.75, "#3e4989"], [1, "#440154"]]
    colours = shown.page.evaluate("([scale, ground]) => fromGround(scale, ground)", [scale, ground])
    if not turned:
        assert colours == scale
        return
    assert [place for place, _ in colours] == [0, 0.5, 1]
    assert [colour for _, colour in colours] == ["#3e4989", "#1f9e89", "#b5de2b"]


def test_a_page_leads_to_the_comparison_of_its_measurement(shown: Any) -> None:
    link = shown.page.get_by_role("link", name="pts-iops: drives compared").first
    link.click()
    in_view(shown.page.locator("#comparison > h3", has_text="pts-iops"))


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_of_every_section_are_kept_for_inspection(show: Callable[..., Any], scheme: str) -> None:
    shown = show(color_scheme=scheme)
    PICTURES.mkdir(parents=True, exist_ok=True)
    sections = shown.page.locator("main > section[id]")
    assert sections.count() > 3
    for section in sections.all():
        name = re.sub(r"\W+", "-", str(section.get_attribute("id")))
        for card in section.locator(".card:has(.chart)").all()[:1]:
            card.scroll_into_view_if_needed()
            expect(card).to_have_class(re.compile(r"\bdrawn\b"))
            card.screenshot(path=PICTURES / f"{scheme}-{name}-chart.png")
        section.screenshot(path=PICTURES / f"{scheme}-{name}.png")
    assert shown.complaints == []
