"""Use of a published site from its folder: search, comparison, refusals, keyboard, phone, contrast, hostile texts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from accessibility import LOOKS, check
from made_archives import Result, made_archive
from mini_project import Project
from playwright.sync_api import Browser, Page, expect

from drivelab.publish.comparability import reasons
from drivelab.publish.site import publish

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
REPORT = (
    "<!DOCTYPE html><title>r</title><p id=p>report</p><script>p.textContent = 'ran'</script>"
    "<a onclick='p.remove()'>a</a>"
)


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two comparable drives, a second firmware, few recordings, and results that are not comparable."""
    folder = tmp_path_factory.mktemp("archives")
    studies = {
        "fast": (Result("a", recordings=3), Result("b", "Rapid R2", speed=1.5, recordings=3)),
        "later": (
            Result("c", firmware="F2", speed=1.2, recordings=3, date="2026-03-04", conditions={"kernel": "6.6"}),
        ),
        "few": (Result("d", "Maker M4", speed=2.0),),
        "virtual": (Result("v", "Model V", virtual=True, clock="virtual", reduced=True, recordings=3),),
        "hostile": (Result("e", HOSTILE, HOSTILE, protocol=HOSTILE, conditions={"kernel": HOSTILE}),),
    }
    for name, results in studies.items():
        made_archive(folder / f"{name}.tar.gz", *results, title=f"Study {name}", report=REPORT)
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def site(archives: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    publish(archives, folder, "Drives of the bench")
    return folder


def entry_of(site: Path, drive: str) -> dict[str, Any]:
    entries = json.loads((site / "index.json").read_text())["entries"]
    return next(entry for entry in entries if entry["drive"] == drive)


def compared(open_page: Callable[..., Page], site: Path, basis: str, comparison: str, **options: Any) -> Page:
    ids = [entry_of(site, drive)["id"] for drive in (basis, comparison)]
    return open_page(site / "compare.html", f"#a={ids[0]}&b={ids[1]}", **options)


def test_search(open_page: Callable[..., Page], site: Path) -> None:
    page = open_page(site / "index.html")
    models = page.locator("#model-table tbody tr:visible")
    expect(models).to_have_count(5)
    for words, count in (("rapid", 1), ("f2", 1), ("maker pts-iops", 2), ("pts-latency", 0), ("", 5)):
        page.get_by_label("Search drive models").fill(words)
        expect(models).to_have_count(count)
    page.get_by_label("Search drive models").fill("rapid")
    expect(page.locator(".found")).to_have_text("1 model, 1 result, 0 studies match.")
    assert page.locator(".test:visible").count() == 1


def test_models_are_sorted_and_lead_to_their_pages(open_page: Callable[..., Page], site: Path) -> None:
    page = open_page(site / "index.html")
    page.get_by_role("button", name="Recordings").first.click()
    page.get_by_role("button", name="Recordings").first.click()
    expect(page.locator("#model-table tbody tr").first).to_contain_text("Maker M1")
    page.locator("#model-table").get_by_role("link", name="Maker M1").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Maker M1")
    expect(page.locator("table[id^=history] tbody tr")).to_have_count(2)
    page.locator("td[data-p]").first.click()
    expect(page.locator("#provenance")).to_contain_text("c/pts-iops/000000000000-run1")
    expect(page.locator("#provenance")).to_contain_text("./drivelab evidence drive=c")
    page.get_by_role("button", name="Close").click()
    page.get_by_role("link", name="Compare c").first.click()
    expect(page.locator(".picked").first).to_contain_text("Maker M1")


def test_comparable_results_have_the_verdicts_of_compare(open_page: Callable[..., Page], site: Path) -> None:
    page = compared(open_page, site, "a", "b")
    rows = page.locator("#differences tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("random write 4 KiB")
    expect(rows.first).to_contain_text("+50\u00a0%")
    expect(rows.first).to_contain_text("faster beyond the margin")
    expect(page.locator("#outcome")).to_contain_text("3 common values: 3 faster beyond the margin")
    expect(page.locator("#conditions")).to_contain_text("S-b")
    turned = compared(open_page, site, "b", "a").locator("#differences tbody tr").first
    expect(turned).to_contain_text("\u221233\u00a0%")
    expect(turned).to_contain_text("slower beyond the margin")


def test_few_recordings_have_no_verdict(open_page: Callable[..., Page], site: Path) -> None:
    page = compared(open_page, site, "a", "d")
    expect(page.locator("#outcome .lead")).to_contain_text("differences in these recordings")
    expect(page.locator("#outcome")).to_contain_text("A verdict needs 3 recordings a side; here are 1 and 3.")
    expect(page.locator("#differences tbody tr").first).to_contain_text("+100\u00a0%")
    assert not {"faster", "slower"} & set(page.locator("#outcome").inner_text().lower().split())


def test_what_is_not_comparable_is_refused_with_the_reasons_of_drivelab(
    open_page: Callable[..., Page], site: Path
) -> None:
    groups = json.loads((site / "index.json").read_text())["groups"]
    for other in ("v", "e"):
        page = compared(open_page, site, "a", other)
        expect(page.locator(".refused h3")).to_have_text("Not comparable")
        expected = reasons(*(groups[entry_of(site, drive)["group"]] for drive in ("a", other)))
        assert page.locator(".refused li").all_inner_texts() == expected
        expect(page.locator("#differences")).to_have_count(0)
    assert "one ran on the wall clock, one on the virtual clock" in reasons(
        *(groups[entry_of(site, drive)["group"]] for drive in ("a", "v"))
    )
    page = compared(open_page, site, "a", "a")
    expect(page.locator(".refused h3")).to_have_text("The same result on both sides")


def test_two_results_are_chosen_with_the_keyboard(open_page: Callable[..., Page], site: Path) -> None:
    page = open_page(site / "compare.html")
    for name, words in (("Basis", "few"), ("Comparison", "later")):
        page.get_by_label(f"Filter, {name}").focus()
        page.keyboard.type(words)
        page.keyboard.press("Tab")
        page.keyboard.press("ArrowDown")
    expect(page.locator("#outcome .lead")).to_contain_text("c (later")
    assert page.url.endswith(f"#a={entry_of(site, 'd')['id']}&b={entry_of(site, 'c')['id']}")


def test_a_report_of_somebody_else_runs_no_script(chromium: Browser, site: Path) -> None:
    page = chromium.new_page()
    page.set_default_timeout(60_000)
    page.goto((site / json.loads((site / "index.json").read_text())["studies"][0]["report"]).as_uri())
    page.locator("a").click()
    assert page.locator("#p").inner_text() == "report"
    page.close()


def test_pages_fit_a_phone_and_meet_wcag_2_2_aa(open_page: Callable[..., Page], site: Path) -> None:
    model = next((site / "models").glob("maker-m1*"))
    for look in LOOKS:
        pages = {
            "index": open_page(site / "index.html", **look), "model": open_page(model, **look),
            "compare": compared(open_page, site, "a", "b", **look),
            "refused": compared(open_page, site, "a", "v", **look),
        }  # fmt: skip
        for name, page in pages.items():
            if name in ("compare", "refused"):
                page.locator("#conditions").wait_for()
            check(page, f"site-{name}", look)


def test_a_collection_of_shipped_virtual_drives(open_page: Callable[..., Page], study: Path, tmp_path: Path) -> None:
    """The report keeps its own script behind the site's policy, and op28 beats op7 as in its study."""
    archive = tmp_path / "mini.tar.gz"
    done = Project.at(study).drivelab("archive", "create", "config/mini.yaml", "-o", str(archive))
    assert done.returncode == 0, done.stderr
    command = [sys.executable, "-c", "import sys; from drivelab.cli.main import main; sys.exit(main())", "publish"]
    subprocess.run([*command, str(archive), "-o", str(tmp_path / "site")], check=True)
    page = open_page(tmp_path / "site/index.html")
    expect(page.locator("#model-table tbody tr")).to_have_count(2)
    expect(page.locator("#model-table")).to_contain_text("7 % over-provisioning")
    page = compared(open_page, tmp_path / "site", "op7", "op28")
    expect(page.locator("#outcome")).to_contain_text("in these recordings")
    expect(page.locator("#conditions")).to_contain_text("over-provisioning")
    page = open_page(tmp_path / "site/index.html")
    page.get_by_role("link", name="Report of").click()
    expect(page.locator("button.sort").first).to_be_visible()
