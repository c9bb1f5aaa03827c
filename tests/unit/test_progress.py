"""Progress of the tests on a terminal."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from progress import SECONDS, Progress

UNIT = [f"tests/unit/test_a.py::test_{number}" for number in range(40)]
WORKFLOW = ["tests/workflow/test_b.py::test_b"]


def report(nodeid: str, when: str = "teardown", *, failed: bool = False) -> Any:
    return SimpleNamespace(nodeid=nodeid, when=when, failed=failed)


def test_time_left_follows_the_pace_and_the_folders_of_the_rest() -> None:
    now = [0.0]
    progress = Progress(lambda text: None, lambda: now[0])
    progress.pytest_xdist_node_collection_finished(None, UNIT + WORKFLOW)
    progress.pytest_xdist_node_collection_finished(None, UNIT + WORKFLOW)
    assert progress.line() == "0 of 41 tests"
    now[0] = 240.0
    for nodeid in UNIT:
        progress.pytest_runtest_logreport(report(nodeid))
    left_min = 4 * SECONDS["tests/workflow"] / (len(UNIT) * SECONDS["tests/unit"])
    assert progress.line() == f"40 of 41 tests, about {left_min:.0f} min left"
    progress.pytest_runtest_logreport(report(WORKFLOW[0]))
    assert progress.line() == "41 of 41 tests, less than a minute left"


def test_a_failed_test_is_named_at_once() -> None:
    written: list[str] = []
    progress = Progress(written.append, lambda: 0.0)
    progress.pytest_xdist_node_collection_finished(None, UNIT)
    progress.pytest_runtest_logreport(report(UNIT[0], "call", failed=True))
    assert written == [f"\r\x1b[KFAILED {UNIT[0]}\n"]
    assert progress.line() == "0 of 40 tests, 1 failed"
