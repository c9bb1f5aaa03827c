"""Concurrent measurements on a host: studies wait for each other, and chains are not split."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from drivelab.plan.plan import Plan
from drivelab.recording.writer import write_json
from drivelab.run import places
from drivelab.run.places import place


@pytest.fixture(autouse=True)
def _run_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setattr(places, "_POLL_S", 0.01)


def plan(folder: Path, drive: str, places_at_a_time: int = 1, clock: str = "wall", **subject: Any) -> Plan:
    context = {"drive": drive, "measurement": "m", "run": 1, "results": str(folder)}
    write_json(folder / "concurrency.json", {"any": places_at_a_time})
    return Plan({"drive": {"serial": drive}, "clock": clock, **subject}, context)


class Waiting:
    """A stage in a thread: `said` is set when it waits, `entered` when it has a place."""

    def __init__(self, plan: Plan, *, last: bool = True) -> None:
        self.said, self.entered, self.leave = threading.Event(), threading.Event(), threading.Event()
        self.words = ""
        self._plan, self._last = plan, last
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _say(self, text: str, fraction: float) -> None:
        self.words = text
        self.said.set()

    def _run(self) -> None:
        with place(self._plan, SimpleNamespace(say=self._say), last=self._last):  # type: ignore[arg-type]
            self.entered.set()
            self.leave.wait(60)

    def __enter__(self) -> Waiting:
        self._thread.start()
        return self

    def __exit__(self, *about: object) -> None:
        self.leave.set()
        self._thread.join(60)


def test_two_studies_take_turns(tmp_path: Path) -> None:
    with Waiting(plan(tmp_path / "b", "y")) as second:
        assert second.entered.wait(60)
        with Waiting(plan(tmp_path / "a", "x")) as first:
            assert first.said.wait(60)
            assert not first.entered.is_set()
            assert "waits for its turn on this host; running now: y/m/" in first.words
            second.leave.set()
            assert first.entered.wait(60)


def test_the_strictest_limit_of_all_studies_applies(tmp_path: Path) -> None:
    with Waiting(plan(tmp_path / "a", "x", 2)) as first, Waiting(plan(tmp_path / "b", "y", 2)) as second:
        assert first.entered.wait(60)
        assert second.entered.wait(60)
        with Waiting(plan(tmp_path / "c", "z", 3)) as third, Waiting(plan(tmp_path / "d", "w", 1)) as fourth:
            assert third.said.wait(60)
            assert fourth.said.wait(60)
            second.leave.set()
            assert third.entered.wait(60)
            assert not fourth.entered.is_set()
            first.leave.set()
            third.leave.set()
            assert fourth.entered.wait(60)


def test_a_place_is_reserved_for_the_next_stage_of_the_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Waiting(plan(tmp_path / "a", "x"), last=False) as purge:
        assert purge.entered.wait(60)
    with Waiting(plan(tmp_path / "b", "y")) as other:
        assert other.said.wait(60)
        with Waiting(plan(tmp_path / "a", "x")) as measure:
            assert measure.entered.wait(60)
            assert not other.entered.is_set()
        assert other.entered.wait(60)


def test_a_reserved_place_expires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "RESERVED_S", 0.05)
    with Waiting(plan(tmp_path / "a", "x"), last=False) as purge:
        assert purge.entered.wait(60)
    with Waiting(plan(tmp_path / "b", "y")) as other:
        assert other.entered.wait(60)


def test_a_failed_stage_releases_its_place(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), place(plan(tmp_path / "a", "x"), SimpleNamespace(say=print), last=False):  # type: ignore[arg-type]
        1 / 0  # noqa: B018
    with Waiting(plan(tmp_path / "b", "y")) as other:
        assert other.entered.wait(60)
    assert not list((tmp_path / "run/places").glob("*.json"))


def test_a_killed_stage_releases_its_place(tmp_path: Path) -> None:
    child = os.fork()
    if not child:
        with place(plan(tmp_path / "a", "x"), SimpleNamespace(say=print), last=False):  # type: ignore[arg-type]
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert list((tmp_path / "run/places").glob("*.json"))
    with Waiting(plan(tmp_path / "b", "y")) as other:
        assert other.entered.wait(60)


def test_drives_measured_at_the_same_time_share_a_place(tmp_path: Path) -> None:
    both = {"simultaneous": ["x", "y"]}
    with Waiting(plan(tmp_path / "a", "x", **both)) as first, Waiting(plan(tmp_path / "a", "y", **both)) as second:
        assert first.entered.wait(60)
        assert second.entered.wait(60)


def test_simulated_drives_need_no_place(tmp_path: Path) -> None:
    with Waiting(plan(tmp_path / "a", "x", clock="virtual")) as stage:
        assert stage.entered.wait(60)
        assert not (tmp_path / "run").exists()
