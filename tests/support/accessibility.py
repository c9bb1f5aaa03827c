"""WCAG 2.2 at level AA, as far as axe-core can check it, and contrast in the browser."""

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


LEAST_CONTRAST = 4.5  # WCAG 2.1, success criterion 1.4.3 at level AA
LEAST_CONTRAST_LARGE = 3.0

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
