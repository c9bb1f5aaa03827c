"""One line on a terminal with the progress of the tests and the time left, instead of a dot for each test."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

SECONDS = {"tests/unit": 0.1, "tests/docs": 1.0, "tests/golden": 0.1, "tests/drives": 2.0, "tests/workflow": 4.0}
"""Mean duration of a test in each folder: only the ratios matter, because the run itself gives the pace."""
OTHERS_S = 2.0
_FIRST_ESTIMATE_S = 20.0
_UPDATE_S = 1.0


class Progress:
    """A pytest plugin; `write` writes text to the terminal, `clock` gives seconds."""

    def __init__(self, write: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._began, self._shown = clock(), -_UPDATE_S
        self._left: Counter[str] = Counter()
        self._all_s = 0.0
        self._done = self._failed = 0
        self._active = True

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Take the tests of a run in one process."""
        self._take([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: Sequence[str]) -> None:
        """Take the tests of a run in several processes: each has collected the same ones."""
        if not self._left:
            self._take(ids)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Iterator[None]:
        """Print no letter for a test; the summary after the last test needs its words."""
        outcome: Any = yield
        return (outcome[0], "", "") if self._active and outcome else outcome

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed += 1
            self._write(f"\r\x1b[KFAILED {report.nodeid}\n")
        if report.when == "teardown":
            self._done += 1
            self._left[_folder(report.nodeid)] -= 1
            if (now := self._clock()) - self._shown >= _UPDATE_S:
                self._shown = now
                self._write(f"\r\x1b[K{self.line()}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        self._active = False

    def line(self) -> str:
        """Return the progress; the time left scales with how fast the tests so far ran."""
        tests = f"{self._done:,} of {self._done + self._left.total():,} tests"
        failed = f", {self._failed} failed" if self._failed else ""
        passed_s = self._clock() - self._began
        left_s = _expected_s(self._left)
        if passed_s < _FIRST_ESTIMATE_S or left_s >= self._all_s:
            return tests + failed
        minutes = left_s * passed_s / (self._all_s - left_s) / 60
        return f"{tests}{failed}, {'less than a minute' if minutes < 1 else f'about {minutes:.0f} min'} left"

    def _take(self, ids: Sequence[str]) -> None:
        self._left = Counter(_folder(each) for each in ids)
        self._all_s = _expected_s(self._left)
        self._began = self._clock()


def _folder(nodeid: str) -> str:
    return "/".join(nodeid.split("/")[:2])


def _expected_s(tests: Counter[str]) -> float:
    return sum(count * SECONDS.get(folder, OTHERS_S) for folder, count in tests.items())
