"""Content that fio writes, read back from a file: incompressible, and without equal pages."""

from __future__ import annotations

import subprocess
import zlib
from pathlib import Path
from typing import Any

import pytest

from drivelab.fio.job import job_text
from drivelab.plan.cell import Cell

MIB = 1 << 20
CAPACITY = 8 * MIB


def written(
    folder: Path, block_size_bytes: int, entropy: float | None = None, *, depth: int = 32, **more: Any
) -> bytes:
    """Return the file's content after one pass of writes with `depth` blocks in flight."""
    target = folder / "target"
    target.write_bytes(bytes(CAPACITY))
    cell = Cell("sequential", 0, block_size_bytes, threads=1, queue_depth=depth, volume_bytes=CAPACITY,
                entropy=entropy, **more)  # fmt: skip
    text = job_text(cell, str(target), "libaio", CAPACITY, 512, 7).replace("direct=1\n", "")
    (folder / "job.fio").write_text(text)
    done = subprocess.run(["fio", "job.fio"], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return target.read_bytes()


def compressed(content: bytes) -> float:
    """Return the compressed share of the length, with a window of 32 KiB."""
    return len(zlib.compress(content, 6)) / len(content)


@pytest.mark.parametrize(
    ("block_size_bytes", "least"), [(512, 0.99), (4096, 0.99), (32768, 0.99), (65536, 0.94), (MIB, 0.94)]
)
def test_content_is_incompressible_and_no_page_repeats(tmp_path: Path, block_size_bytes: int, least: float) -> None:
    content = written(tmp_path, block_size_bytes)
    assert compressed(content) > least
    pages = [content[at : at + 4096] for at in range(0, CAPACITY, 4096)]
    assert len(set(pages)) == len(pages)


@pytest.mark.parametrize("depth", [1, 2, 32])
@pytest.mark.parametrize("block_size_bytes", [512, 4096])
def test_no_page_repeats_if_small_blocks_reuse_buffers(tmp_path: Path, block_size_bytes: int, depth: int) -> None:
    content = written(tmp_path, block_size_bytes, depth=depth, reuse_buffers=True)
    pages = [content[at : at + 4096] for at in range(0, CAPACITY, 4096)]
    assert len(set(pages)) == len(pages)


def test_entropy_is_the_share_that_does_not_compress(tmp_path: Path) -> None:
    assert compressed(written(tmp_path, 4096, entropy=0.5)) == pytest.approx(0.5, abs=0.05)
