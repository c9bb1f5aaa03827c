"""Fixtures for all tests: a copy of the configuration to change, a report of skipped tests, and progress.

`.ci/run` sets DRIVELAB_TEST_STRICT on a fully equipped machine. A skipped test then fails, unless its reason matches
the regular expression DRIVELAB_TEST_LACKS. With the value `folders`, the project's own folders are watched too.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from progress import Progress
from project_folders import FolderWatch

from drivelab.core import lock

# Tests load the host that they measure on. They would wait for each other, and repeat at random.
os.environ["DRIVELAB_REMEASURE"] = "0"

# A shell without job control ignores SIGINT in its background jobs, and nohup ignores SIGHUP. Programs inherit that, so
# tests could not end them by these signals.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

ROOT = Path(__file__).resolve().parents[1]
STRICT = "DRIVELAB_TEST_STRICT" in os.environ
WATCHES_FOLDERS = os.environ.get("DRIVELAB_TEST_STRICT") == "folders"

# No deadline per example: other tests load the host too. `.ci/run` judges a change, so it has the same examples each
# time; other runs look for new ones.
settings.register_profile("shared-host", deadline=None, derandomize=STRICT, max_examples=30)
settings.load_profile("shared-host")


def pytest_configure(config: pytest.Config) -> None:
    """Keep what drivelab keeps in its run folder away from other drivelabs on this machine."""
    folder = tempfile.mkdtemp(prefix="drivelab-run.")
    os.environ["DRIVELAB_RUN_DIR"] = folder
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a test after an argument of bytes, not after its content, which may hold the time (gzip, zip)."""
    return argname if isinstance(val, bytes) else None


def pytest_sessionstart(session: pytest.Session) -> None:
    """Show progress on a terminal, unless the options ask for more or less output."""
    terminal: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and terminal.isatty and session.config.get_verbosity() == 0:
        session.config.pluginmanager.register(Progress(terminal.write))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a device test in another folder, because `drivelab test` looks for them in tests/drives only."""
    for item in items:
        if item.get_closest_marker("device") and not item.path.is_relative_to(ROOT / "tests/drives"):
            raise pytest.UsageError(f"{item.nodeid} is marked 'device', but is not in tests/drives")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Fail a skipped test on a machine with everything that tests need."""
    report: Any = yield
    if STRICT and report.skipped and not hasattr(report, "wasxfail") and not _lacks(reason := _reason(report)):
        report.outcome = "failed"
        report.longrepr = (
            f"{item.nodeid} was skipped: {reason}. DRIVELAB_TEST_STRICT says that this machine has everything."
        )
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print a line for each reason of skipped tests."""
    counts: Counter[tuple[str, str]] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        counts[_reason(report), "/".join(report.nodeid.split("/")[:2])] += 1
    for (reason, folder), count in sorted(counts.items()):
        terminalreporter.write_line(f"NOT TESTED: {count} test{'s' * (count > 1)} in {folder}: {reason}")


def _reason(report: Any) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return str(reason).removeprefix("Skipped: ")


def _lacks(reason: str) -> bool:
    pattern = os.environ.get("DRIVELAB_TEST_LACKS")
    return pattern is not None and re.search(pattern, reason) is not None


@pytest.fixture(scope="session")
def _folder_watch() -> Iterator[FolderWatch | None]:
    """Watch the project's own folders, in `.ci/run` only: elsewhere, people use them during a test run."""
    if not WATCHES_FOLDERS:
        yield None
        return
    watch = FolderWatch(ROOT)
    yield watch
    _fail_if_touched(watch)
    watch.close()


@pytest.fixture(autouse=True)
def _project_folders_untouched(_folder_watch: FolderWatch | None) -> Iterator[None]:
    """Fail a test during which the project's own folders were used; with several workers, maybe by another test."""
    yield
    if _folder_watch is not None:
        _fail_if_touched(_folder_watch)


def _fail_if_touched(watch: FolderWatch) -> None:
    if touched := watch.touched():
        pytest.fail(f"a test used the project's own folders: {', '.join(touched[:10])}")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse a device in use at once, in tests that use a device throughout."""
    monkeypatch.setattr(lock, "PASSING_S", 0.0)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project's configuration and traces, as the current folder; results go there too."""
    for name in ("config", "traces"):
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path
