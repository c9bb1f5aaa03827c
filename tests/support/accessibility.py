"""WCAG 2.2 at level AA, as far as axe-core can check it."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

_LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


def violations(page: Page) -> list[str]:
    """Return what axe-core finds on a page, with the folded parts open: rule and elements."""
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    page.wait_for_function("!document.querySelector('.on-demand[open] > .packed')")
    results = Axe().run(page, options={"runOnly": _LEVELS, "resultTypes": ["violations"]})
    return [f"{rule['id']}: {node['html'][:200]}" for rule in results.response["violations"] for node in rule["nodes"]]
