"""Measure when Chromium first paints a report, and when it has loaded all of it.

python tests/benchmarks/first_paint.py REPORT [TIMES]

Prints the size of the page and the median milliseconds of TIMES (5) loads in new windows, at 1280 by 900.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from statistics import median

from playwright.sync_api import sync_playwright

PAINTED = """() => [performance.getEntriesByName("first-contentful-paint")[0].startTime,
  performance.getEntriesByType("navigation")[0].loadEventEnd]"""


def main(report: Path, times: int = 5) -> None:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        found = []
        for _ in range(times):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(report.resolve().as_uri())
            page.wait_for_timeout(1000)
            found.append(page.evaluate(PAINTED))
            page.close()
        browser.close()
    painted, loaded = map(median, zip(*found, strict=True))
    print(f"{report.stat().st_size / 1e6:.2f} MB, first paint {painted:.0f} ms, loaded {loaded:.0f} ms")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:3]))
