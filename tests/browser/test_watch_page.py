"""The live page during a growing study, a restart of the server, and use by a reader."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from accessibility import violations
from playwright.sync_api import Browser, Page, expect
from watched import MadeDrive, facts

from drivelab.figures.base.style import colours
from drivelab.watch.hub import Hub
from drivelab.watch.study_view import StudyWatch
from drivelab.watch.web_server import WatchServer

PICTURES = Path(__file__).resolve().parents[2] / "build/test-artefacts/browser"
PATIENCE_MS = 60_000
PHONE = {"width": 360, "height": 740}
LOST = "net::ERR_"  # the browser's error for a server that is gone
# Share of the canvas's pixels that have a colour.
PAINTED = """(canvas, wanted) => {
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let found = 0;
  for (let at = 0; at < data.length; at += 4)
    if (wanted.every((value, index) => Math.abs(data[at + index] - value) < 12)) found += 1;
  return found / (data.length / 4);
}"""
# Most pixels of a colour in one row of the canvas: level curves, without the rows below the chart.
ON_A_LINE = """(canvas, wanted) => {
  const {width, height} = canvas, data = canvas.getContext("2d").getImageData(0, 0, width, height * 0.7).data;
  let most = 0;
  for (let row = 0; row < Math.floor(height * 0.7); row += 1) {
    let found = 0;
    for (let at = 4 * row * width; at < 4 * (row + 1) * width; at += 4)
      if (wanted.every((value, index) => Math.abs(data[at + index] - value) < 12)) found += 1;
    most = Math.max(most, found);
  }
  return most;
}"""

# Keeps the texts of each drawing of the canvas in `drawings`.
KEEP_WORDS = """() => {
  const pen = CanvasRenderingContext2D.prototype, {clearRect, fillText} = pen;
  let words = [];
  window.drawings = [];
  pen.clearRect = function (...box) { window.drawings.push(words); words = []; clearRect.apply(this, box); };
  pen.fillText = function (word, ...place) { words.push(word); fillText.call(this, word, ...place); };
}"""


class Growing:
    """A study with two drives; a thread adds one second of data every 0.1 s."""

    def __init__(self, folder: Path) -> None:
        self.drives = [MadeDrive(folder, name, at_s=time.time() - 240).begin() for name in ("op7", "op28")]
        self.folder, self._ending, self._seconds = folder, threading.Event(), 0
        for number in range(1, 6):
            for drive, iops in zip(self.drives, (2000 - 30 * number, 4000), strict=True):
                drive.cell(number, 0, iops)
                drive.cell(number, 1, 9000)
        for _ in range(240):
            self.grow()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def grow(self) -> None:
        self._seconds += 1
        for drive, settled in zip(self.drives, (1800, 3600), strict=True):
            writes = settled + 9000 * math.exp(-self._seconds / 40) + 300 * math.sin(self._seconds * settled)
            drive.second(round(writes), latency_ms=16_000 / writes, temperature_c=45.0)
            drive.status("round 6 of at most 25, cell 1 of 2, RND 4KiB 0/100 T2Q8", 0.2)

    def _run(self) -> None:
        while not self._ending.wait(0.1):
            self.grow()

    def stop(self) -> None:
        self._ending.set()
        self._thread.join()

    def server(self, port: int = 0) -> WatchServer:
        server = WatchServer(Hub([StudyWatch(facts(self.folder, *self.drives))], 0.1), port=port)
        server.start()
        return server


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Growing]:
    study = Growing(tmp_path)
    yield study
    study.stop()


@pytest.fixture
def server(growing: Growing) -> Iterator[WatchServer]:
    server = growing.server()
    yield server
    server.stop()


@pytest.fixture
def complaints() -> list[str]:
    return []


@pytest.fixture
def open_page(chromium: Browser, complaints: list[str]) -> Iterator[Callable[..., Page]]:
    contexts = []

    def opened(url: str, **options: Any) -> Page:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(url)
        expect(page.locator("#link")).to_have_text("live", timeout=PATIENCE_MS)
        return page

    yield opened
    for context in contexts:
        context.close()


def rate(page: Page, drive: str) -> str:
    return page.get_by_role("article", name=drive, exact=True).locator(".iops b").inner_text()


def choose(page: Page, field: str, label: str) -> None:
    page.locator(f"#{field} label", has_text=label).click()


def test_numbers_update_automatically(
    server: WatchServer, open_page: Callable[..., Page], complaints: list[str]
) -> None:
    page = open_page(server.url)
    expect(page.locator("h1")).to_have_text("A made study")
    expect(page.locator("#studies")).to_contain_text("reduced protocol", ignore_case=True)
    for drive in ("op7", "op28"):
        card = page.get_by_role("article", name=drive, exact=True)
        expect(card.locator(".standing")).to_have_text("running")
        expect(card.locator(".doing")).to_contain_text("round 6 of at most 25")
        expect(card.locator(".facts")).to_contain_text("45 °C")
        before = rate(page, drive)
        expect(card.locator(".iops b")).not_to_have_text(before)
        assert 1000 < float(rate(page, drive).replace(",", "")) < 13_000
    expect(page.locator("#log li")).to_have_count(22)
    assert complaints == []


def test_both_drives_are_in_one_chart_in_their_colours(
    server: WatchServer, open_page: Callable[..., Page], complaints: list[str]
) -> None:
    page = open_page(server.url)
    canvas = page.locator("#chart")
    shades = [[round(255 * part) for part in shade] for shade in colours(2)]
    assert all(canvas.evaluate(PAINTED, shade) > 0.0005 for shade in shades)
    for field, label in (("metric", "MiB/s"), ("metric", "Latency"), ("axis", "Since start"), ("span", "1 h")):
        choose(page, field, label)
        assert all(canvas.evaluate(PAINTED, shade) > 0.0002 for shade in shades), label
    button = page.locator("#legend button", has_text="op28")
    button.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "false")
    assert canvas.evaluate(PAINTED, shades[1]) == 0
    canvas.press("ArrowLeft")
    expect(page.locator("#readout")).to_contain_text("op7")
    expect(page.locator("#readout")).not_to_contain_text("op28")
    assert complaints == []


def test_the_palette_equals_that_of_the_figures(server: WatchServer, open_page: Callable[..., Page]) -> None:
    script = open_page(server.url).evaluate("fetch('/state.js').then((answer) => answer.text())")
    listed = script.partition("COLOURS = [")[2].partition("]")[0].replace('"', "").split(", ")
    assert listed == ["#" + "".join(f"{round(255 * part):02x}" for part in shade) for shade in colours(10)]


def test_steady_state_is_shown(server: WatchServer, open_page: Callable[..., Page]) -> None:
    page = open_page(server.url)
    variables = page.locator("#steady .variable")
    expect(variables).to_have_count(2)
    expect(variables.nth(0)).to_contain_text("steady. average 1,910 IOPS, range 6.3 % (at most 20 %), slope 6.3 %")
    expect(variables.nth(1)).to_contain_text("steady. average 4,000 IOPS, range 0.0 %")
    expect(variables.nth(0).locator("circle.in")).to_have_count(5)


def test_the_page_reconnects_after_a_restart_of_the_server(
    growing: Growing, open_page: Callable[..., Page], complaints: list[str]
) -> None:
    server = growing.server()
    page = open_page(server.url)
    server.stop()
    expect(page.locator("#link")).to_contain_text("connection lost", timeout=PATIENCE_MS)
    server = growing.server(server.port)
    try:
        expect(page.locator("#link")).to_have_text("live", timeout=PATIENCE_MS)
        before = rate(page, "op7")
        expect(page.get_by_role("article", name="op7", exact=True).locator(".iops b")).not_to_have_text(before)
        expect(page.locator("#log li")).to_have_count(22)  # no line twice
    finally:
        server.stop()
    assert [words for words in complaints if LOST not in words] == []


def test_the_end_and_a_failure_are_announced(
    growing: Growing, server: WatchServer, open_page: Callable[..., Page], complaints: list[str]
) -> None:
    page = open_page(server.url)
    card = page.get_by_role("article", name="op7", exact=True)
    expect(card.locator(".facts")).to_contain_text("45 °C")
    growing.stop()
    growing.drives[0].status(state="failed", reason="fio ended with exit status 1")
    expect(card.locator(".standing")).to_have_text("failed")
    expect(card.locator(".facts")).to_have_text("0 of 1 measured")  # old telemetry is not shown
    expect(card).to_contain_text("fio ended with exit status 1")
    expect(page.locator("#announce")).to_contain_text("op7: failed, fio ended with exit status 1")
    for drive in growing.drives:
        drive.complete()
    expect(page.locator("#studies")).to_contain_text("finished · 2 of 2 measurements done")
    expect(page.locator("#announce")).to_contain_text("finished")
    expect(page.locator("#link")).to_have_text("live")
    assert complaints == []


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("light", {}),
        ("dark", {"color_scheme": "dark"}),
        ("phone", {"viewport": PHONE, "reduced_motion": "reduce"}),
    ],
)
def test_the_page_fits_its_viewport_and_meets_wcag_2_2_aa(
    server: WatchServer, open_page: Callable[..., Page], complaints: list[str], name: str, options: dict[str, Any]
) -> None:
    page = open_page(server.url, **options)
    expect(page.locator("#steady .variable")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"watch-{name}.png", full_page=True)
    assert violations(page) == []
    assert complaints == []


def test_stages_differ_in_the_chart(tmp_path: Path, open_page: Callable[..., Page], complaints: list[str]) -> None:
    first, second = (MadeDrive(tmp_path, name, at_s=time.time() - 60) for name in ("op7", "op28"))
    first.precondition(seconds=25, writes=4000)
    first.status("fill 2 x, 60%", 0.6, stage="precondition")
    second.status("erasing", 0.5, stage="purge", since_s=time.time() - 50)
    server = WatchServer(Hub([StudyWatch(facts(tmp_path, first, second))], 0.1))
    server.start()
    try:
        page = open_page(server.url)
        assert [rate(page, drive) for drive in ("op7", "op28")] == ["4,000", "\N{EN DASH}"]
        canvas, readout = page.locator("#chart"), page.locator("#readout")
        shades = [[round(255 * part) for part in shade] for shade in colours(2)]
        assert all(canvas.evaluate(PAINTED, shade) > 0.0001 for shade in shades)  # a purge shows only its frame
        page.screenshot(path=PICTURES / "watch-stages.png")
        choose(page, "axis", "Since start")
        canvas.focus()
        page.keyboard.press("ArrowLeft")
        expect(readout).to_have_text("\N{MINUS SIGN}0:01: op7 4,000 IOPS (preconditioning)")
        first.begin()
        for _ in range(3):
            first.second(2000)
        first.status("round 1", 0.1)
        expect(page.get_by_role("article", name="op7", exact=True).locator(".iops b")).to_have_text("2,000")
        page.keyboard.press("Escape")
        page.keyboard.press("ArrowLeft")
        expect(readout).to_have_text("0:02: op7 2,000 IOPS")
    finally:
        server.stop()
    assert [line for line in complaints if LOST not in line] == []


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., WatchServer]]:
    """Start a server for a study of fake drives."""
    servers = []

    def serving(*drives: MadeDrive, watch: StudyWatch | None = None) -> WatchServer:
        server = WatchServer(Hub([watch or StudyWatch(facts(tmp_path, *drives))], 0.1))
        server.start()
        servers.append(server)
        return server

    yield serving
    for server in servers:
        server.stop()


def test_a_new_stage_keeps_earlier_facts(
    tmp_path: Path, serve: Callable[..., WatchServer], open_page: Callable[..., Page], complaints: list[str]
) -> None:
    begin_s = time.time() - 200
    first, second = (MadeDrive(tmp_path, "op7", at_s=begin_s, measurement=name) for name in ("first", "second"))
    first.begin()
    (first.part / "identity.json").write_text('{"model": "drive of a test", "firmware": "F1"}')
    for _ in range(100):
        first.second(7000)
    first.status("round 9", 0.9)
    page = open_page(serve(first, second).url)
    card, canvas = page.get_by_role("article", name="op7", exact=True), page.locator("#chart")
    expect(card.locator(".iops b")).to_have_text("7,000")
    first.complete()
    second.status("erasing", 0.5, stage="purge")
    expect(card.locator(".doing")).to_contain_text("second, purge: erasing")
    expect(card.locator(".iops b")).to_have_text("\N{EN DASH}")
    expect(card.locator(".gauge text").nth(1)).to_have_text("8,000")
    expect(card.locator(".model")).to_contain_text("drive of a test, firmware F1")
    expect(card.locator("progress")).to_have_js_property("value", 0.5833)
    (shade,) = ([round(255 * part) for part in shade] for shade in colours(1))
    assert canvas.evaluate(PAINTED, shade) > 0.0005
    choose(page, "axis", "Since start")
    expect(canvas).not_to_have_attribute("aria-label", re.compile("no IOPS"))  # earlier values are drawn faint
    choose(page, "axis", "Clock")
    choose(page, "span", "1 min")  # all values are older
    expect(canvas).to_have_attribute("aria-label", re.compile("no IOPS in this time range"))
    second.status(state="done", stage="measure")
    expect(card.locator(".standing")).to_have_text("between two stages")
    assert float(card.locator(".needle").evaluate("one => getComputedStyle(one).opacity")) < 0.5
    assert complaints == []


def words_in_the_chart(page: Page) -> list[str]:
    """Return the texts of the next complete drawing, including axis numbers; needs `KEEP_WORDS`."""
    page.evaluate("window.drawings = []")
    page.wait_for_function("() => window.drawings.length > 2")  # the first may have started earlier
    return list(page.evaluate("window.drawings[2]"))


def test_measurements_in_the_chart_have_full_or_shortened_names(
    tmp_path: Path, serve: Callable[..., WatchServer], open_page: Callable[..., Page]
) -> None:
    lengths = {"pts-iops": 4, "pts-write-saturation-steady": 30, "pts-latency": 60, "pts-write-saturation": 150}
    at_s = time.time() - sum(lengths.values()) - 10 * len(lengths) - 40
    drives = []
    for name, seconds in lengths.items():
        drive = MadeDrive(tmp_path, "op7", at_s=at_s, measurement=name)
        if name == "pts-write-saturation":
            drive.precondition(seconds=40)
        drive.begin()
        for _ in range(seconds):
            drive.second()
        if name != "pts-write-saturation":
            drive.complete()
        at_s = drive.at_s + 10
        drives.append(drive)
    drives[-1].status("round 2", 0.2)
    page = open_page(serve(*drives).url)
    page.evaluate(KEEP_WORDS)
    words = words_in_the_chart(page)
    named = [word for word in words if word.startswith("pts")]
    assert (len(named), named[1:]) == (3, ["pts-latency", "pts-write-saturation"])
    assert re.fullmatch(r"pts-\S+\N{HORIZONTAL ELLIPSIS}", named[0])
    assert "pts-write-saturation-steady".startswith(named[0][:-1])
    assert "preconditioning" in words
    assert "measurement" not in words
    page.screenshot(path=PICTURES / "watch-names.png")
    page.set_viewport_size(PHONE)
    narrow = words_in_the_chart(page)
    assert "measurement" not in narrow
    assert all(len(word) > 4 for word in narrow if word.startswith("pts"))
    page.set_viewport_size({"width": 1280, "height": 900})
    choose(page, "axis", "Since start")
    words = words_in_the_chart(page)
    assert "pts-write-saturation" in words
    assert "measurement" not in words


def test_measured_drives_without_a_status_are_shown_as_measured(
    tmp_path: Path, serve: Callable[..., WatchServer], open_page: Callable[..., Page]
) -> None:
    drives = [MadeDrive(tmp_path, name).begin() for name in ("op7", "op28")]
    for drive in drives:
        drive.complete()
    (tmp_path / "status/op7.json").unlink()
    (tmp_path / "status/op28.json").write_text('{"recording": "op28/pts')
    page = open_page(serve(*drives).url)
    expect(page.locator("#studies")).to_contain_text("finished · 2 of 2 measurements done")
    expect(page.locator("#others tr")).to_have_text(["op7measured1 of 1", "op28measured1 of 1"])


def test_before_the_first_value_the_chart_says_so(
    tmp_path: Path, serve: Callable[..., WatchServer], open_page: Callable[..., Page]
) -> None:
    page = open_page(serve(MadeDrive(tmp_path, "op7")).url)
    expect(page.locator("#chart")).to_have_attribute("aria-label", re.compile("no drive yet; no values yet"))


def test_equal_curves_of_two_drives_are_both_visible(
    tmp_path: Path, serve: Callable[..., WatchServer], open_page: Callable[..., Page]
) -> None:
    drives = [MadeDrive(tmp_path, name, at_s=time.time() - 60).begin() for name in ("op7", "op28")]
    for drive in drives:
        for _ in range(60):
            drive.second()
        drive.status()
    page = open_page(serve(*drives).url)
    for shade in colours(2):
        assert page.locator("#chart").evaluate(ON_A_LINE, [round(255 * part) for part in shade]) > 100


def wear(drive: MadeDrive, fresh: int, settled: int, rounds: int) -> None:
    """Precondition a drive, and let it slow down during its measurement until now."""
    drive.precondition(seconds=0)
    drive.place = "condition/telemetry.jsonl"
    for second in range(110):
        drive.second(round(fresh * (0.45 if second > 55 else 0.6) + 20 * math.sin(second)), block_bytes=131072)
    drive.at_s += 3
    drive.place = "telemetry.jsonl"
    drive.begin()
    (drive.part / "identity.json").write_text('{"model": "made-up drive", "firmware": "1.0"}')
    each_s = int((time.time() - drive.at_s) / (2 * rounds + 1))
    for number in range(2 * rounds + 1):
        level = settled + (fresh - settled) * math.exp(-number / 3)
        for second in range(each_s):
            writes = level * (1 if number % 2 == 0 else 1.4) * (1 + 0.03 * math.sin(1.7 * second + number))
            drive.second(round(writes), latency_ms=16_000 / writes, temperature_c=41.0 + number / 2)
        if number < 2 * rounds:
            drive.cell(1 + number // 2, number % 2, level * (1 if number % 2 == 0 else 1.4))
    drive.status(
        f"round {rounds + 1} of at most 25, cell 1 of 2, RND 4KiB 0/100 T2Q8", (2 * rounds + 0.9) / 50,
        since_s=drive.at_s - each_s * (2 * rounds + 1), host="bench-a",
    )  # fmt: skip


def test_the_picture_for_the_documentation(
    tmp_path: Path, serve: Callable[..., WatchServer], open_page: Callable[..., Page]
) -> None:
    """`docs/images/watch.png` is such a picture of a running study with fake drives."""
    now_s = time.time()
    drives = [MadeDrive(tmp_path, name, at_s=now_s - ago_s) for name, ago_s in (("drive-a", 520), ("drive-b", 440))]
    for drive in drives:
        drive.status("erasing", 1.0, stage="purge", since_s=drive.at_s - 40, at_s=drive.at_s - 2)
    watch = StudyWatch(facts(tmp_path, *drives))
    watch.poll()  # no file keeps a finished purge
    wear(drives[0], 9000, 2100, 7)
    wear(drives[1], 7000, 3100, 4)
    page = open_page(serve(watch=watch).url)
    expect(page.locator("#steady .variable")).to_have_count(2)
    expect(page.locator("#steady")).to_contain_text("5 rounds")
    page.wait_for_function("document.getAnimations().length === 0")
    log_top = page.get_by_role("heading", name="Log").bounding_box()["y"]  # type: ignore[index]
    page.screenshot(
        path=PICTURES / "watch-documentation.png",
        full_page=True,
        clip={"x": 0, "y": 0, "width": 1280, "height": log_top - 28},
    )
