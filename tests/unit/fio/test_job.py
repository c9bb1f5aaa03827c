"""Job texts, and that fio does what they are meant to ask for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from drivelab.fio.job import job_text
from drivelab.plan.cell import Cell

MIB = 1 << 20
RANGE = Cell("random", 0, 4096, threads=1, queue_depth=1, block_size_max_bytes=MIB, volume_bytes=400 * MIB)


def options(cell: Cell) -> dict[str, str]:
    text = job_text(cell, "/dev/x", "psync", 64 * MIB, 512, 7)
    return dict(line.split("=", 1) for line in text.splitlines()[1:])


def test_one_block_size_is_as_ever() -> None:
    found = options(Cell("random", 0, 4096, threads=1, queue_depth=1, runtime_s=1.0))
    assert found["bs"] == "4096"
    assert "bsrange" not in found


def test_a_range_of_block_sizes() -> None:
    found = options(RANGE)
    assert found["bsrange"] == "4096-1048576"
    assert "bs" not in found
    assert RANGE.workload == "RND 4KiB-1024KiB 0/100"


def test_a_volume_holds_the_largest_block() -> None:
    small = Cell("random", 0, 4096, threads=1, queue_depth=1, block_size_max_bytes=MIB, volume_bytes=8192)
    assert int(options(small)["io_size"]) == MIB


def test_a_composite_is_not_for_fio() -> None:
    stream = {"operation": "read", "block_size_bytes": 4096, "pattern": "random", "share": 1.0}
    with pytest.raises(ValueError, match="composite T1Q1 is no job of fio's"):
        options(Cell("composite", 100, 4096, threads=1, queue_depth=1, runtime_s=1.0, streams=(stream,)))


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_draws_every_size_of_a_range_alike(tmp_path: Path) -> None:
    """About 800 writes: multiples of 4 KiB from there to 1 MiB, at such offsets, half of them below the middle."""
    target, log = tmp_path / "target", tmp_path / "log"
    with target.open("wb") as file:
        file.truncate(64 * MIB)
    text = job_text(RANGE, str(target), "null", 64 * MIB, 512, 7).replace("direct=1\n", "")
    job = tmp_path / "job.fio"
    job.write_text(text + f"write_iolog={log}\n")
    subprocess.run(["fio", str(job)], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    rows = [line.split() for line in log.read_text().splitlines() if " write " in line]
    offsets, lengths = ([int(row[column]) for row in rows] for column in (3, 4))
    assert len(rows) > 500
    assert all(length % 4096 == 0 and 4096 <= length <= MIB for length in lengths)
    assert all(offset % 4096 == 0 for offset in offsets)
    assert any(offset % length for offset, length in zip(offsets, lengths, strict=True))
    assert max(offset + length for offset, length in zip(offsets, lengths, strict=True)) <= 64 * MIB
    below = sum(length <= MIB // 2 for length in lengths) / len(lengths)
    assert 0.43 < below < 0.57  # four standard deviations of 800 tosses
    assert sum(lengths) / len(lengths) == pytest.approx((4096 + MIB) / 2, rel=0.08)
