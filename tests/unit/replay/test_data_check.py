"""Reading back what a replay wrote, from files that lose, tear and misdirect writes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_traces import Row
from prepared_replays import prepare_rows
from replay_files import BLOCK, direct_io_trouble, identity

from drivelab.core.errors import UserError
from drivelab.plan.replay_choice import ReplayChoice, TimingChoice
from drivelab.replay import native
from drivelab.replay.native import RESULTS, EngineOptions
from drivelab.replay.outcome import write_outcome
from drivelab.replay.verify.data_check import FAULTS, read_back
from drivelab.replay.verify.data_requests import DATA
from drivelab.replay.verify.written_data import blocks

SEED = 2**63 + 5
MIB = 1 << 20
ROWS = [
    Row(0, None, 1, "write", 0, 8 * BLOCK), Row(10, None, 11, "write", 2 * BLOCK, BLOCK, flags=("fua",)),
    Row(20, None, 21, "flush", 0, 0), Row(30, None, 31, "write", 3 * BLOCK, BLOCK),
    Row(40, None, 41, "discard", 4 * BLOCK, BLOCK), Row(50, None, 51, "write-zeroes", 5 * BLOCK, BLOCK),
    Row(60, None, 61, "write", 16 * BLOCK, 2 * BLOCK), Row(70, None, 71, "read", 0, 8 * BLOCK),
]  # fmt: skip
"""Each request waits for the one before it."""


class Replayed:
    """A replay on a file, which the tests then alter."""

    def __init__(self, folder: Path, rows: list[Row], choice: ReplayChoice, **options: Any) -> None:
        self.target, self.outcome = folder / "target", folder / "outcome.parquet"
        self.target.write_bytes(bytes(4 * MIB))
        prepared = prepare_rows(folder, rows, choice, 4 * MIB, BLOCK)
        engine = EngineOptions(seed=SEED, exact_data=True, **options)
        native.run_engine(str(self.target), identity(self.target), prepared.schedule, folder, engine)
        about = {"engine": "native", DATA: {"seed": SEED, "block_bytes": BLOCK}}
        write_outcome(prepared.planned, folder / RESULTS, self.outcome, about)

    def put(self, block: int, content: bytes) -> None:
        with self.target.open("r+b") as file:
            file.seek(block * BLOCK)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    def faults(self, power_cut: bool = False) -> dict[str, int]:
        """Return the kinds of fault that the check found."""
        checked = read_back(str(self.target), self.outcome, power_cut=power_cut)
        assert len(checked["examples"]) == sum(min(checked[fault], 3) for fault in FAULTS)
        return {fault: checked[fault] for fault in FAULTS if checked[fault]}


def data(request: int, number: int) -> bytes:
    return blocks(SEED, BLOCK, np.array([request]), np.array([number])).tobytes()


@pytest.fixture
def replayed(tmp_path: Path) -> Replayed:
    if (reason := native.possible() or direct_io_trouble(tmp_path)) is not None:
        pytest.skip(reason)
    return Replayed(tmp_path, ROWS, ReplayChoice(TimingChoice("asap", depth=1), dependencies="trace"))


def test_a_target_that_keeps_everything_has_no_faults(replayed: Replayed) -> None:
    assert replayed.faults() == replayed.faults(power_cut=True) == {}
    checked = read_back(str(replayed.target), replayed.outcome)
    assert (checked["checked_blocks"], checked["required_blocks"]) == (10, 10)
    assert read_back(str(replayed.target), replayed.outcome, power_cut=True)["required_blocks"] == 8


@pytest.mark.parametrize(
    ("block", "content", "fault"),
    [
        (2, data(0, 2), "lost"),  # the write before
        (2, bytes(BLOCK), "lost"),
        (2, b"x" * BLOCK, "lost"),
        (3, data(0, 3), "lost"),
        (5, data(0, 5), "lost"),  # as before the request to write zeroes
        (2, data(0, 2)[:512] + data(1, 0)[512:], "torn"),
        (2, data(1, 0)[:-8] + bytes(8), "torn"),
        (16, data(6, 1), "misdirected"),
        (16, data(0, 0), "misdirected"),
        (4, data(0, 4), None),  # after a discard, anything
        (4, b"x" * BLOCK, None),
    ],
)
def test_every_fault_is_found(replayed: Replayed, block: int, content: bytes, fault: str | None) -> None:
    replayed.put(block, content)
    assert replayed.faults() == ({fault: 1} if fault else {})


@pytest.mark.parametrize(
    ("block", "content", "fault"),
    [
        (3, data(0, 3), None),  # the newer write was not flushed
        (3, bytes(BLOCK), "lost"),  # but the older one was
        (5, data(0, 5), None),
        (16, b"x" * BLOCK, None),  # never flushed
        (16, data(6, 0)[:512] + b"x" * (BLOCK - 512), "torn"),
        (2, data(0, 2), "lost"),  # FUA
        (0, bytes(BLOCK), "lost"),
    ],
)
def test_after_a_power_cut_only_durable_writes_are_required(
    replayed: Replayed, block: int, content: bytes, fault: str | None
) -> None:
    replayed.put(block, content)
    assert replayed.faults(power_cut=True) == ({fault: 1} if fault else {})


def test_a_target_that_became_shorter_is_unreadable_there(replayed: Replayed) -> None:
    os.truncate(replayed.target, 17 * BLOCK)
    assert replayed.faults() == {"unreadable": 1}
    assert read_back(str(replayed.target), replayed.outcome)["required_blocks"] == 10


@pytest.mark.parametrize(("conflicts", "threads"), [("as-traced", 3), ("ordered", 1)])
def test_of_writes_in_flight_together_any_may_be_the_last(tmp_path: Path, conflicts: str, threads: int) -> None:
    if (reason := native.possible() or direct_io_trouble(tmp_path)) is not None:
        pytest.skip(reason)
    rows = [Row(n, None, n + 50, "write", (n * 7 % 5) * BLOCK, (1 + n % 3) * BLOCK) for n in range(400)]
    choice = ReplayChoice(TimingChoice("asap", depth=32), conflicts=conflicts)
    replayed = Replayed(tmp_path, rows, choice, threads=threads)
    assert replayed.faults() == {}
    replayed.put(0, data(0, 0))
    assert replayed.faults() == {"lost": 1}


def test_other_replays_cannot_be_checked(tmp_path: Path, replayed: Replayed) -> None:
    write_outcome(tmp_path / "made.planned.parquet", None, replayed.outcome, {"engine": "native"})
    with pytest.raises(UserError, match="did not write data to be checked; replay again with --verify"):
        replayed.faults()
