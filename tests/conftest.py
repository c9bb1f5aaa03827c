"""What all tests share: the project's folder, a copy of its configuration to change, and a word on what was skipped.

`.ci/run` sets DRIVELAB_TEST_STRICT on a machine that has everything: a skipped test is then a failed one, except for
what DRIVELAB_TEST_LACKS (a regular expression of reasons) names, and the project's own folders are watched.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from project_folders import FolderWatch

# How long an example takes is the host's affair: other tests use it too.
settings.register_profile("shared-host", deadline=None)
settings.load_profile("shared-host")

# A shell without job control ignores SIGINT in what runs in its background, and nohup ignores SIGHUP. Programs inherit
# that, and those that tests end by such a signal would not hear it.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

ROOT = Path(__file__).resolve().parents[1]
STRICT = "DRIVELAB_TEST_STRICT" in os.environ


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Fail a skipped test where everything is there that tests need."""
    report: Any = yield
    if STRICT and report.skipped and not hasattr(report, "wasxfail") and not _lacks(reason := _reason(report)):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped: {reason}. This machine is said to have what it needs."
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Report what was not tested and why, a line for each reason."""
    counts: Counter[tuple[str, str]] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        counts[_reason(report), "/".join(report.nodeid.split("/")[:2])] += 1
    for (reason, folder), count in sorted(counts.items()):
        terminalreporter.write_line(f"NOT TESTED: {count} test{'s' * (count > 1)} in {folder}: {reason}")


def _reason(report: Any) -> str:
    told = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return str(told).removeprefix("Skipped: ")


def _lacks(reason: str) -> bool:
    pattern = os.environ.get("DRIVELAB_TEST_LACKS")
    return pattern is not None and re.search(pattern, reason) is not None


@pytest.fixture(scope="session")
def _folder_watch() -> Iterator[FolderWatch | None]:
    """The watch over the project's own folders, in `.ci/run` alone: elsewhere people use them during a test run."""
    if not STRICT:
        yield None
        return
    watch = FolderWatch(ROOT)
    yield watch
    _fail_if_touched(watch)
    watch.close()


@pytest.fixture(autouse=True)
def _project_folders_untouched(_folder_watch: FolderWatch | None) -> Iterator[None]:
    """Fail a test during which the project's own folders were used. With several workers, it may be another test."""
    yield
    if _folder_watch is not None:
        _fail_if_touched(_folder_watch)


def _fail_if_touched(watch: FolderWatch) -> None:
    if touched := watch.touched():
        pytest.fail(f"a test used the project's own folders: {', '.join(touched[:10])}")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the project's configuration and traces, as the current folder; results go there too."""
    for name in ("config", "traces"):
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path
