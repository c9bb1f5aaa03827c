"""Replays of a shipped trace on a loop device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from drivelab.core.errors import CellFailed
from drivelab.drives import target
from drivelab.drives.target import Target
from drivelab.plan.replay_choice import ReplayChoice, TimingChoice
from drivelab.replay import native, once
from drivelab.replay.native import EngineOptions
from drivelab.replay.outcome import read_outcome
from drivelab.replay.prepare import prepare
from drivelab.trace import trace_catalogue

pytest_plugins = ("capture_fixtures",)
pytestmark = [pytest.mark.device, pytest.mark.single]


@pytest.fixture
def where(device: str) -> Iterator[Target]:
    if (reason := native.possible()) is not None:
        pytest.skip(reason)
    with target.named(Path(device), destroy=True) as opened:
        yield opened


def replayed(where: Target, folder: Path, options: EngineOptions) -> dict[str, Any]:
    choice = ReplayChoice(TimingChoice("asap"))
    prepared = prepare(
        trace_catalogue.path_of("sqlite-inserts"),
        folder / "made",
        choice,
        where.capacity_bytes,
        where.logical_block_bytes,
    )
    once.run(where, prepared, folder, options)
    return once.evaluate(prepared, folder)


def test_a_target_that_was_not_approved_is_refused(where: Target, tmp_path: Path) -> None:
    wrong = replace(where, identity="block 1:1 1")
    with pytest.raises(CellFailed, match=r"but .block 1:1 1. was approved; nothing was written"):
        replayed(wrong, tmp_path, EngineOptions())


def test_engine_options_are_kept(where: Target, tmp_path: Path) -> None:
    report = replayed(where, tmp_path, EngineOptions(depth_limit=2))
    assert report["state"] == "finished"
    rows = read_outcome(tmp_path / "outcome.parquet", ["in_flight"])
    assert rows["in_flight"].max() <= 2
