"""The report of a small study in Debian's Chromium; all its errors and requests are collected."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from emulation import host
from mini_project import Project
from playwright.sync_api import Browser, Page, expect, sync_playwright

STUDY_FOLDER = "DRIVELAB_BROWSER_STUDY"
"""Variable with the folder of another project with a finished study, whose report is used instead."""
_NAMES = ("chromium", "chromium-browser")
_HERE = ("file:", "data:", "blob:")
_PATIENCE_MS = 60_000
"""Generous, because the machine may be busy; only a failed test reaches this limit."""

expect.set_options(timeout=_PATIENCE_MS)


@dataclass
class Shown:
    """A page of the browser, with its errors and requests."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Fail if there was an error, or a request for anything but files of this machine."""
        assert self.complaints == []
        assert [url for url in self.requests if not url.startswith(_HERE)] == []


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Start the browser; end the session with COULD_NOT_RUN if that is not possible."""
    try:
        if not any(map(host.which, _NAMES)):
            host.install(["chromium", "fonts-dejavu-core"])  # the package has no font
        program = next(filter(None, map(host.which, _NAMES)), None)
        if program is None:
            raise host.UnavailableError("the package chromium is missing, also after apt-get install")
    except host.UnavailableError as reason:
        pytest.exit(f"the report could not be tested in a browser here: {reason}", host.COULD_NOT_RUN)
    with sync_playwright() as playwright:
        # root may not use the browser's sandbox, and the page is trusted
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], timeout=_PATIENCE_MS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a project with a small finished study on the virtual clock."""
    if given := os.environ.get(STUDY_FOLDER):
        return Path(given)
    project = Project(tmp_path_factory.mktemp("study") / "project").drawn()
    project.run()
    return project.folder


@pytest.fixture
def show(chromium: Browser, request: pytest.FixtureRequest) -> Iterator[Callable[..., Shown]]:
    """Open a page, by default the report of the study, in a new window; options are those of a browser context."""
    contexts = []

    def opened(page: Path | None = None, **options: Any) -> Shown:
        path = page or request.getfixturevalue("study") / "results/report/index.html"
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        context.set_default_timeout(_PATIENCE_MS)
        shown = Shown(context.new_page())
        shown.page.on("console", lambda line: shown.complaints.append(line.text) if line.type == "error" else None)
        shown.page.on("pageerror", lambda error: shown.complaints.append(str(error)))
        shown.page.on("dialog", lambda dialog: shown.complaints.append(dialog.message))
        shown.page.on("request", lambda request: shown.requests.append(request.url))
        shown.page.goto(path.as_uri())
        return shown

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def shown(show: Callable[..., Shown]) -> Iterator[Shown]:
    """The report; after each test, check that there was no error and no request."""
    report = show()
    yield report
    report.check()
