"""Canaries cover the whole drive, and are found again if a single block survives."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivelab.drives.purge import canaries
from drivelab.drives.purge.canaries import Geometry, Sample

MIB = 1 << 20


@settings(deadline=None)
@given(
    chunks=st.integers(1, 5000),
    block_bytes=st.sampled_from([512, 4096, 16384]),
    seed=st.integers(0, 2**32),
    excess=st.integers(0, 7),
)
def test_canaries_leave_no_wide_gap(chunks: int, block_bytes: int, seed: int, excess: int) -> None:
    """Every contiguous region as long as two parts contains a canary; so do both ends of the drive."""
    chunk = max(4096, block_bytes)
    geometry = Geometry(chunks * chunk + excess * 512, block_bytes)
    offsets = canaries.places(geometry, rng=random.Random(seed))
    assert offsets == sorted(set(offsets))
    assert offsets[0] == 0
    assert offsets[-1] == (chunks - 1) * chunk
    assert all(offset % chunk == 0 for offset in offsets)
    widest = max([after - before for before, after in pairwise(offsets)], default=0)
    assert widest < 2 * (chunks // min(canaries.COUNT, chunks) + 1) * chunk


@settings(deadline=None)
@given(kept=st.sets(st.integers(0, 31)), block_bytes=st.sampled_from([512, 4096]))
def test_one_surviving_block_counts_as_survivor(kept: set[int], block_bytes: int) -> None:
    planted = {number * 4096: random.Random(number).randbytes(4096) for number in range(4)}
    blocks = 4096 // block_bytes
    contents = []
    for number, data in enumerate(planted.values()):
        pieces = [
            data[at : at + block_bytes] if number * 8 + at // 512 in kept else bytes(block_bytes)
            for at in range(0, 4096, block_bytes)
        ]
        contents.append(b"".join(pieces))
    alive = {number * 4096 for number in range(4) for at in range(blocks) if number * 8 + at * (8 // blocks) in kept}
    assert set(canaries.survivors(planted, Sample(tuple(contents)), block_bytes)) == alive


def test_unreadable_place_is_no_survivor() -> None:
    assert canaries.survivors({0: b"x" * 4096}, Sample((None,)), 512) == []
    assert canaries.common_byte((None,)) is None
    assert canaries.common_byte((b"\0\0", b"\0")) == 0
    assert canaries.common_byte((b"\0\0", b"\1")) is None


def test_drive_that_drops_writes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "drive"
    file.write_bytes(bytes(MIB))
    monkeypatch.setattr("drivelab.drives.purge.canaries.Raw.write", lambda self, offset, data: None)
    with pytest.raises(OSError, match="does not read back"):
        canaries.write(str(file), Geometry(MIB, 512))
