"""WCAG 2.2 at level AA, as far as axe-core can check it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from page_contrast import FAINT, LEAST_CONTRAST, LEAST_CONTRAST_LARGE
from playwright.sync_api import Page

LOOKS: list[dict[str, Any]] = [
    {"viewport": size, "color_scheme": scheme}
    for scheme in ("light", "dark")
    for size in ({"width": 1280, "height": 900}, {"width": 390, "height": 844})
]
"""Options of a browser context: desktop and phone, light and dark."""
_PICTURES = Path(__file__).resolve().parents[2] / "build/test-artefacts/browser"
_LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


def violations(page: Page) -> list[str]:
    """Return what axe-core finds on a page, with the folded parts open: rule and elements."""
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    page.wait_for_function("!document.querySelector('.on-demand[open] > .packed')")
    results = Axe().run(page, options={"runOnly": _LEVELS, "resultTypes": ["violations"]})
    return [f"{rule['id']}: {node['html'][:200]}" for rule in results.response["violations"] for node in rule["nodes"]]


def check(page: Page, name: str, look: Mapping[str, Any]) -> None:
    """Check that a page fits the window of one of LOOKS, is legible and has no violation; keep a picture of it."""
    width, scheme = look["viewport"]["width"], look["color_scheme"]
    page.screenshot(path=_PICTURES / f"{name}-{width}-{scheme}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") == width, name
    assert page.evaluate(FAINT, [LEAST_CONTRAST, LEAST_CONTRAST_LARGE]) == [], (name, scheme)
    assert violations(page) == [], (name, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == width, f"{name}, unfolded"
