"""The replay engine on several targets: each request goes to its own, in one order."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from replay_files import BLOCK, Engine, direct_io_trouble, direct_read, identity, make_records, write_schedule
from replay_semantics import Rules, violations

from drivelab.core.errors import CellFailed
from drivelab.replay import native
from drivelab.replay.engine_records import TARGET_SHIFT, Records, ScheduleWriter, open_schedule, target_numbers
from drivelab.replay.native import EngineOptions
from drivelab.replay.prefill import prefill_schedule

MIB = 1 << 20
SIZES = (4 * MIB, MIB, 2 * MIB)
FILL = (b"\xaa", b"\xbb", b"\xcc")


@pytest.fixture
def targets(tmp_path: Path) -> list[Path]:
    if (reason := native.possible() or direct_io_trouble(tmp_path)) is not None:
        pytest.skip(reason)
    paths = [tmp_path / f"target{number}" for number in range(len(SIZES))]
    for path, size, byte in zip(paths, SIZES, FILL, strict=True):
        path.write_bytes(byte * size)
    return paths


@pytest.fixture
def engine(targets: list[Path], tmp_path: Path) -> Engine:
    return Engine(tmp_path, targets[0], others=targets[1:])


def on(target: int, operation: str, offset: int = 0, length: int = BLOCK, **more: Any) -> dict[str, Any]:
    """Return a request to a target."""
    return {
        "operation": operation, "offset_bytes": 0 if operation == "flush" else offset,
        "length_bytes": 0 if operation == "flush" else length, "flags": target << TARGET_SHIFT, **more,
    }  # fmt: skip


def random_requests(count: int) -> Records:
    dice = np.random.default_rng(7)
    kinds = ("read", "write", "write", "flush", "discard", "write-zeroes")
    rows = []
    for index in range(count):
        target = int(dice.integers(len(SIZES)))
        offset = int(dice.integers(SIZES[target] // BLOCK - 4)) * BLOCK
        after = int(dice.integers(1, index + 1)) if index and dice.random() < 0.3 else 0
        rows.append(on(target, kinds[dice.integers(len(kinds))], offset, int(dice.integers(1, 4)) * BLOCK,
                       deadline_ns=index * 20_000, after=after))  # fmt: skip
    return make_records(rows)


@pytest.mark.parametrize("options", [
    EngineOptions(watchdog_s=30), EngineOptions(watchdog_s=30, threads=2), EngineOptions(watchdog_s=30, depth_limit=1),
])  # fmt: skip
def test_each_request_goes_to_its_target(engine: Engine, targets: list[Path], options: EngineOptions) -> None:
    ran = engine.run_rows(
        on(1, "write", 2 * BLOCK), on(2, "discard", BLOCK, 2 * BLOCK), on(0, "write-zeroes", 3 * BLOCK),
        on(1, "flush"), on(0, "read", 3 * MIB), on(2, "write", 8 * BLOCK, 2 * BLOCK), on(0, "flush"),
        options=options,
    )  # fmt: skip
    assert (ran.status, ran.words, ran.report["state"]) == (0, "", "finished")
    assert ran.results["result"].tolist() == [BLOCK, 0, 0, 0, BLOCK, 2 * BLOCK, 0]
    changed = []
    for path, byte in zip(targets, FILL, strict=True):
        blocks = np.frombuffer(direct_read(path), np.uint8).reshape(-1, BLOCK)
        changed.append(np.flatnonzero((blocks != byte[0]).any(axis=1)).tolist())
    assert changed == [[3], [2], [1, 2, 8, 9]]
    assert direct_read(targets[0], 3 * BLOCK, BLOCK) == bytes(BLOCK)
    assert direct_read(targets[2], BLOCK, 2 * BLOCK) == bytes(2 * BLOCK)


def test_dependencies_hold_across_targets(engine: Engine) -> None:
    made = random_requests(2000)
    options = EngineOptions(watchdog_s=30, threads=2, depth_limit=8)
    ran = engine.run(made, options)
    assert ran.report["state"] == "finished"
    waits = np.flatnonzero(made["after"])
    awaited = made["after"][waits].astype(np.int64) - 1
    assert (target_numbers(made)[waits] != target_numbers(made)[awaited]).sum() > 100
    assert (ran.results["issue_ns"][waits] >= ran.results["complete_ns"][awaited]).all()
    assert ran.report["most_in_flight"] <= 8
    # A busy host may stop one of the threads for any time, and the other passes it.
    assert not violations(made, ran.results, Rules(depth_limit=8, threads=2, tolerance_ns=1 << 62))


@pytest.mark.parametrize(("words", "changes"), [
    ("the schedule has 3 targets, but 2 are given", {"others": 1}),
    ("are the same target", {"same": True}),
    ("the target has 1048576 bytes, the schedule is for 2097152", {"reach": True}),
    ("goes to a target that the schedule does not have", {"unknown": True}),
])  # fmt: skip
def test_targets_that_do_not_fit_the_schedule_are_refused(
    targets: list[Path], tmp_path: Path, words: str, changes: dict[str, Any]
) -> None:
    rows = [on(number, "write") for number in range(3)]
    rows += [on(1, "write", 2 * MIB - BLOCK)] if "reach" in changes else []
    rows += [on(3, "write")] if "unknown" in changes else []
    schedule = write_schedule(tmp_path / "s.schedule", make_records(rows), max(SIZES), targets=3)
    others = [(str(path), identity(path)) for path in targets[1 : 1 + changes.get("others", 2)]]
    if "same" in changes:
        others[1] = others[0]
    with pytest.raises(CellFailed, match=words):
        native.run_engine(str(targets[0]), identity(targets[0]), schedule, tmp_path, EngineOptions(), others=others)
    for path, byte, size in zip(targets, FILL, SIZES, strict=True):
        assert path.read_bytes() == byte * size


def test_a_target_that_is_only_read_may_be_read_only(engine: Engine, targets: list[Path], tmp_path: Path) -> None:
    """The engine opens each target for writing only if the schedule changes it."""
    made = make_records([on(0, "write"), on(1, "read"), on(2, "write")])
    words = engine.prepare(made, EngineOptions())
    traced = tmp_path / "opens"
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    subprocess.run(["strace", "-f", "-e", "trace=open,openat", "-o", str(traced), *words], check=True)
    opens = [line for line in traced.read_text().splitlines() if str(targets[1]) in line]
    assert opens
    assert all("O_RDONLY" in line for line in opens)


def test_the_prefill_writes_what_each_target_is_read_of(targets: list[Path], tmp_path: Path) -> None:
    made = make_records([on(0, "read", 0, 300 * BLOCK), on(2, "read", BLOCK), on(1, "write"), on(2, "read", 4 * BLOCK)])
    schedule = write_schedule(tmp_path / "s.schedule", made, max(SIZES), targets=3)
    assert prefill_schedule(schedule, tmp_path / "fill.schedule") == 302 * BLOCK
    opened = open_schedule(tmp_path / "fill.schedule")
    assert opened.header["targets"] == 3
    of = target_numbers(opened.records)
    sizes = [int(opened.records["length_bytes"][of == number].sum()) for number in range(3)]
    assert sizes == [300 * BLOCK, 0, 2 * BLOCK]
    assert opened.records["offset_bytes"][of == 2].tolist() == [BLOCK, 4 * BLOCK]


def test_a_schedule_of_one_target_is_as_it_always_was(tmp_path: Path) -> None:
    """Recordings keep schedules of earlier versions, which had zeroes where the number of targets is now."""
    with ScheduleWriter(tmp_path / "s.schedule", MIB, BLOCK) as writer:
        writer.write(make_records([{"operation": "write"}]))
    header = (tmp_path / "s.schedule").read_bytes()[:64]
    assert header[56:] == bytes(8)
    assert open_schedule(tmp_path / "s.schedule").records["flags"].tolist() == [0]
