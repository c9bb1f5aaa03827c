"""Null targets, and what they say of the host's ceiling."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from drivelab.drives import guard
from drivelab.fio import null_target
from drivelab.fio.null_target import NullTarget, load_of
from drivelab.plan.cell import Cell

READ, WRITE, MIX = (Cell("random", share, 4096, 1, 32, 1.0) for share in (100, 0, 65))
NULL_BLK, ZRAM = NullTarget("nullb0", "/dev/nullb0", "", 512), NullTarget("zram3", "/dev/zram3", "", 4096)
OF_FIO = NullTarget("fio's null engine", "null", "", 512, engine="null")


@pytest.mark.parametrize(
    ("target", "load", "bounds"),
    [
        (NULL_BLK, READ, ("at least", "at most")),
        (NULL_BLK, WRITE, ("at most",)),
        (NULL_BLK, MIX, ("at most",)),
        (ZRAM, READ, ("at least",)),
        (ZRAM, WRITE, ()),
        (ZRAM, Cell("random", 100, 512, 1, 1, 1.0), ()),
        (OF_FIO, READ, ("at most",)),
        (OF_FIO, WRITE, ("at most",)),
    ],
)
def test_what_a_target_says(target: NullTarget, load: Cell, bounds: tuple[str, ...]) -> None:
    assert target.bounds(load) == bounds


@pytest.mark.parametrize(
    ("threads", "queues", "cpus", "reads", "writes"),
    [
        (4, 1, 8, ("at least",), ()),
        (4, 4, 8, ("at least",), ()),
        (4, 8, 8, ("at least", "at most"), ("at most",)),
        (16, 8, 8, ("at least", "at most"), ("at most",)),
        (1, 1, 8, ("at least", "at most"), ("at most",)),
    ],
)
def test_threads_that_share_a_queue_give_no_upper_bound(
    threads: int,
    queues: int,
    cpus: int,
    reads: tuple[str, ...],
    writes: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cpus)
    target = replace(NULL_BLK, queues=queues)
    assert target.bounds(replace(READ, threads=threads)) == reads
    assert target.bounds(replace(WRITE, threads=threads)) == writes


def test_a_device_is_only_read() -> None:
    for target in (NULL_BLK, ZRAM):
        assert target.readonly
        assert all(target.load_for(load).direction == "read" for load in (READ, WRITE, MIX))
    assert OF_FIO.load_for(WRITE) == WRITE


def test_a_load_is_what_the_ceiling_depends_on() -> None:
    cell = Cell("random", 0, 4096, 2, 8, 300.0, range_share=0.5, rate_iops=100.0, slice_s=1.0, entropy=0.5, title="x")
    assert load_of(cell) == Cell("random", 0, 4096, 2, 8, 0.5, entropy=0.5)
    assert load_of(Cell("random", 0, 4096, 2, 8, 0.2)) == Cell("random", 0, 4096, 2, 8, 0.2)
    beside = {"pattern": "random", "read_share": 100, "block_size_bytes": 4096, "threads": 1, "queue_depth": 1}
    for other in (
        Cell("random", 0, 4096, 1, 1, 1.0, operation="trim"),
        Cell("random", 0, 4096, 1, 1, 1.0, synchronous=True),
        Cell("random", 0, 4096, 1, 1, 1.0, beside=(beside,)),
    ):
        assert load_of(other) is None


def device(root: Path, irqmode: str | None = "0", zoned: str = "none") -> Path:
    for path, text in (("size", "4194304"), ("queue/logical_block_size", "512"), ("queue/zoned", zoned)):
        file = root / "block/nullb0" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (root / "class/block").mkdir(parents=True)
    (root / "class/block/nullb0").symlink_to(root / "block/nullb0")
    if irqmode is not None:
        (root / "module/null_blk/parameters").mkdir(parents=True)
        (root / "module/null_blk/parameters/irqmode").write_text(irqmode)
        (root / "module/null_blk/parameters/submit_queues").write_text("4")
    return root


def test_a_free_null_blk_device_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "holder", lambda device, name: None)
    target, reasons = null_target.null_block_device([], device(tmp_path))
    assert target is not None
    assert (target.path, target.logical_block_bytes, target.capacity_bytes) == ("/dev/nullb0", 512, 1 << 30)
    assert target.queues == 4
    assert reasons == []


@pytest.mark.parametrize(
    ("irqmode", "zoned", "besides", "holder", "reason"),
    [
        ("2", "none", [], None, "a timer delays its completions (irqmode)"),
        (None, "none", [], None, "its irqmode is not known"),
        ("0", "host-managed", [], None, "it has zones"),
        ("0", "none", ["nullb0"], None, "it is measured itself"),
        ("0", "none", [], "is mounted at /mnt", "is mounted at /mnt"),
    ],
)
def test_a_null_blk_device_that_would_mislead_or_is_in_use_is_left_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    irqmode: str | None,
    zoned: str,
    besides: list[str],
    holder: str | None,
    reason: str,
) -> None:
    monkeypatch.setattr(guard, "holder", lambda device, name: holder)
    assert null_target.null_block_device(besides, device(tmp_path, irqmode, zoned)) == (
        None, [f"/dev/nullb0: {reason}"],
    )  # fmt: skip
