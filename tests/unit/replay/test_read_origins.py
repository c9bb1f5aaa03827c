"""What the engine finds in the data that reads return, and faults of a target that it finds."""

from __future__ import annotations

import mmap
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_traces import Row
from prepared_replays import prepare_rows
from replay_files import BLOCK, direct_io_trouble, engines_of
from verified_replays import OPTIONS, SEED, Bench

from drivelab.core.errors import CellFailed, UserError
from drivelab.plan.replay_choice import ReplayChoice, TimingChoice
from drivelab.replay import native
from drivelab.replay.engine_records import open_results
from drivelab.replay.native import RESULTS
from drivelab.replay.verify.read_origins import (
    FOREIGN,
    MIXED,
    ORIGINS,
    ZEROES,
    make_origins,
    written_by,
)
from drivelab.replay.verify.verification import first_example, verified_blocks, wrong_blocks
from drivelab.replay.verify.written_data import blocks

MIB = 1 << 20
IN_ORDER = ReplayChoice(TimingChoice("asap", depth=1), dependencies="trace")


READ_EVERY_NS = 500_000
"""Slowly enough for this process to change a block between reads."""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    if (reason := native.possible() or direct_io_trouble(tmp_path)) is not None:
        pytest.skip(reason)
    (tmp_path / "target").write_bytes(bytes(4 * MIB))
    return Bench(tmp_path, tmp_path / "target")


def row(n: int, operation: str, block: int, count: int = 1) -> Row:
    return Row(n * 10, None, n * 10 + 1, operation, block * BLOCK, count * BLOCK)


def data(request: int, number: int) -> bytes:
    return blocks(SEED, BLOCK, np.array([request]), np.array([number])).tobytes()


@pytest.mark.parametrize("threads", [1, 3])
def test_each_block_that_is_read_names_its_write(bench: Bench, threads: int) -> None:
    content = b"x" * BLOCK + data(0, 1)[:512] + bytes(BLOCK - 512) + data(0, 1)[:-8] + bytes(8)
    bench.target.write_bytes(content + bytes(4 * MIB - 3 * BLOCK))
    prepared = bench.prepare(
        [row(1, "write", 4, 3), row(2, "write", 5), row(3, "read", 4, 3), row(4, "read", 0, 4), row(5, "flush", 0, 0),
         row(6, "read", 4)],
        IN_ORDER,
    )  # fmt: skip
    bench.run(prepared, replace(OPTIONS, threads=threads))
    words = bench.words(prepared)
    known, request, number = written_by(words)
    assert known.tolist() == [True] * 3 + [False] * 4 + [True]
    assert request[known].tolist() == [0, 1, 0, 0]
    assert number[known].tolist() == [0, 0, 2, 0]
    assert words[3:7].tolist() == [FOREIGN, MIXED, MIXED, ZEROES]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("block_bytes", [512, BLOCK])
def test_overlapping_requests_in_flight_together_are_no_faults(bench: Bench, threads: int, block_bytes: int) -> None:
    kinds = ("write", "read", "read", "write", "write-zeroes", "read", "write", "discard", "read")
    rows = [
        Row(n, None, n + 50, kinds[n * 5 % 9 if n % 90 else 7], (n * 7 % 11) * BLOCK, (1 + n % 4) * BLOCK)
        for n in range(3000)
    ]
    prepared = bench.prepare(rows, ReplayChoice(TimingChoice("asap", depth=32)), block_bytes)
    bench.run(prepared, replace(OPTIONS, threads=threads))
    checked = bench.verified(prepared, block_bytes)
    reads = checked["reads"]
    assert wrong_blocks(checked) == 0, first_example(checked)
    assert reads["unseen_blocks"] == 0
    assert reads["checked_blocks"] == sum(r.length_bytes for r in rows if r.operation == "read") // block_bytes
    assert verified_blocks(checked) > reads["required_blocks"] > 0
    assert not (bench.folder / ORIGINS).exists()


@pytest.mark.parametrize("block_bytes", [512, BLOCK])
def test_all_reads_after_a_prefill_are_judged(bench: Bench, block_bytes: int) -> None:
    """Pieces of prefill data and of other data beside it, as read during a change, are no faults."""
    kinds = ("read", "read", "write", "write-zeroes", "read", "write", "read")
    rows = [Row(n, None, n + 50, kinds[n % 7], (n * 5 % 61) * BLOCK, (1 + n % 40) * BLOCK) for n in range(3000)]
    prepared = bench.prepare(rows, ReplayChoice(TimingChoice("asap", depth=32)), block_bytes)
    bench.run(prepared, bench.prefill(prepared, replace(OPTIONS, threads=2)))
    checked = bench.verified(prepared, block_bytes, prefilled=True)
    reads = checked["reads"]
    assert wrong_blocks(checked) == 0, first_example(checked)
    assert reads["required_blocks"] == reads["checked_blocks"] > 0
    assert checked["required_blocks"] == checked["checked_blocks"] == 100 * BLOCK // block_bytes


READS_FIRST = [row(1, "read", 0, 64), row(2, "write", 40), row(3, "read", 30, 20)]
"""The prefill has two requests: of 32 and of 32 blocks."""


@pytest.mark.parametrize(
    ("content", "faults", "returned"),
    [
        (bytes(BLOCK), {"lost": 2}, "returned zeroes"),
        (b"x" * BLOCK, {"lost": 2}, "returned no data of the replay"),
        (data(4, 2), {"misdirected": 2}, "returned the prefill to the block at 139264 B"),
        (data(3, 0), {"misdirected": 2}, "returned the prefill to the block at 0 B"),
        (data(3, 31)[:8] + bytes(BLOCK - 8), {"torn": 2}, "returned parts of several writes"),
        (data(3, 31), {}, ""),
    ],
)
def test_a_prefilled_block_that_changes_before_the_replay_is_found(
    bench: Bench, content: bytes, faults: dict[str, int], returned: str
) -> None:
    prepared = bench.prepare(READS_FIRST, IN_ORDER)
    options = bench.prefill(prepared)
    assert options.prefilled == 2
    overwrite(bench.target, 31, content)
    bench.run(prepared, options)
    checked = bench.verified(prepared, prefilled=True)
    reads = checked["reads"]
    assert {kind: reads[kind] for kind in ("lost", "torn", "misdirected") if reads[kind]} == faults
    assert reads["required_blocks"] == 84
    assert checked["checked_blocks"] == checked["required_blocks"] == 64
    assert {kind: checked[kind] for kind in faults} == dict.fromkeys(faults, 1), "the block is wrong at the end, too"
    if faults:
        assert f"block at {31 * BLOCK} B, read at" in reads["examples"][0]
        assert "expected the prefill or newer data" in reads["examples"][0]
        assert returned in reads["examples"][0]


def test_a_lost_write_that_leaves_prefilled_data_is_found(bench: Bench) -> None:
    prepared = bench.prepare(READS_FIRST, IN_ORDER)
    bench.run(prepared, bench.prefill(prepared))
    overwrite(bench.target, 40, data(4, 8))
    assert bench.verified(prepared, prefilled=True)["examples"] == [
        f"lost: block at {40 * BLOCK} B: an older write is there"
    ]


def test_reads_are_looked_at_when_more_are_complete_than_the_memory_holds(bench: Bench) -> None:
    rows = [row(n, "write" if n < 64 else "read", 16 * (n % 64), 16) for n in range(6000)]
    prepared = bench.prepare(rows, ReplayChoice(TimingChoice("asap", depth=64), conflicts="ordered"))
    bench.run(prepared)
    checked = bench.verified(prepared)
    assert wrong_blocks(checked) == 0
    assert checked["reads"]["required_blocks"] == checked["reads"]["checked_blocks"] == 16 * (6000 - 64)


@pytest.mark.parametrize(
    ("content", "fault", "returned"),
    [
        (data(0, 3), "lost", "returned the write of"),
        (bytes(BLOCK), "lost", "returned zeroes"),
        (data(0, 0), "misdirected", "to the block at 0 B"),
        (data(0, 3)[:512] + data(1, 0)[512:], "torn", "returned parts of several writes"),
    ],
)
def test_data_that_changes_during_the_replay_is_found(bench: Bench, content: bytes, fault: str, returned: str) -> None:
    """Another program changes a block behind the replay's back, and repairs it when a read has seen that."""
    reads = [Row(n * READ_EVERY_NS, None, n * READ_EVERY_NS + 1, "read", 2 * BLOCK, 4 * BLOCK) for n in range(2, 6000)]
    prepared = bench.prepare([row(0, "write", 0, 8), row(1, "write", 3), *reads], ReplayChoice(dependencies="trace"))
    replayed = threading.Thread(target=bench.run, args=(prepared,), kwargs={"on_tick": lambda elapsed_s: None})
    replayed.start()
    while not (bench.folder / RESULTS).exists() or completed(bench.folder) < 100:
        assert replayed.is_alive()
    with stopped(prepared.schedule):
        overwrite(bench.target, 3, content)
        before = completed(bench.folder)
    while completed(bench.folder) < before + 100:
        assert replayed.is_alive(), "the replay ended before the fault was repaired; give it more reads"
    with stopped(prepared.schedule):
        overwrite(bench.target, 3, data(1, 0))
    replayed.join()
    checked = bench.verified(prepared)
    assert checked["reads"][fault] >= 98
    assert wrong_blocks(checked) == sum(checked["reads"][kind] for kind in ("lost", "torn", "misdirected"))
    assert not any(checked[kind] for kind in ("lost", "torn", "misdirected", "unreadable")), "it was repaired"
    example = next(words for words in checked["reads"]["examples"] if words.startswith(fault))
    assert f"{fault}: block at {3 * BLOCK} B, read at " in example
    assert "(request 1) or newer data" in example
    assert returned in example


@contextmanager
def stopped(schedule: Path) -> Iterator[None]:
    """Stop the engine that replays a schedule, so that it does not get ahead of this process."""
    (pid,) = engines_of(schedule)
    os.kill(pid, signal.SIGSTOP)
    try:
        while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            time.sleep(0.001)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def completed(folder: Path) -> int:
    try:
        return int(open_results(folder / RESULTS).header["completed"])
    except UserError:  # being created
        return 0


def overwrite(target: Path, block: int, content: bytes) -> None:
    """Write a block with direct I/O, so that no page cache comes between."""
    descriptor = os.open(target, os.O_WRONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, BLOCK) as buffer:
            buffer.write(content)
            assert os.pwritev(descriptor, [buffer], block * BLOCK) == BLOCK
    finally:
        os.close(descriptor)


def test_the_engine_refuses_the_file_of_another_schedule(bench: Bench) -> None:
    one = bench.prepare([row(0, "write", 0), row(1, "read", 0)], IN_ORDER)
    (bench.folder / "other").mkdir()
    other = prepare_rows(bench.folder / "other", [row(0, "read", 0, 2), row(1, "read", 0)], IN_ORDER, 4 * MIB, BLOCK)
    make_origins(bench.folder / ORIGINS, other.schedule)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "make_origins", lambda path, schedule: None)
        with pytest.raises(CellFailed, match="belongs to another schedule"):
            bench.run(one)


def test_missing_space_is_refused_before_the_replay(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = bench.prepare([row(0, "write", 0), row(1, "read", 0)], IN_ORDER)

    def full(descriptor: int, offset: int, length: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("drivelab.replay.verify.read_origins.os.posix_fallocate", full)
    with pytest.raises(UserError, match="needs 64 KiB here"):
        make_origins(bench.folder / ORIGINS, prepared.schedule)
