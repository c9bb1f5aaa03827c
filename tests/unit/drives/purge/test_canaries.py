"""Canaries: everywhere, and found again if one block of one survives."""

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
    """Whatever contiguous part of the drive is as long as two of the parts holds a canary; so do both ends."""
    chunk = max(4096, block_bytes)
    geometry = Geometry(chunks * chunk + excess * 512, block_bytes)
    found = canaries.places(geometry, rng=random.Random(seed))
    assert found == sorted(set(found))
    assert found[0] == 0
    assert found[-1] == (chunks - 1) * chunk
    assert all(offset % chunk == 0 for offset in found)
    widest = max([after - before for before, after in pairwise(found)], default=0)
    assert widest < 2 * (chunks // min(canaries.COUNT, chunks) + 1) * chunk


@settings(deadline=None)
@given(kept=st.sets(st.integers(0, 31)), block_bytes=st.sampled_from([512, 4096]))
def test_one_surviving_block_is_a_survivor(kept: set[int], block_bytes: int) -> None:
    planted = {number * 4096: random.Random(number).randbytes(4096) for number in range(4)}
    blocks = 4096 // block_bytes
    found = []
    for number, data in enumerate(planted.values()):
        pieces = [
            data[at : at + block_bytes] if number * 8 + at // 512 in kept else bytes(block_bytes)
            for at in range(0, 4096, block_bytes)
        ]
        found.append(b"".join(pieces))
    alive = {number * 4096 for number in range(4) for at in range(blocks) if number * 8 + at * (8 // blocks) in kept}
    assert set(canaries.survivors(planted, Sample(tuple(found)), block_bytes)) == alive


def test_place_that_cannot_be_read_holds_nothing_known() -> None:
    assert canaries.survivors({0: b"x" * 4096}, Sample((None,)), 512) == []
    assert canaries.common_byte((None,)) is None
    assert canaries.common_byte((b"\0\0", b"\0")) == 0
    assert canaries.common_byte((b"\0\0", b"\1")) is None


def test_drive_that_swallows_writes_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "drive"
    file.write_bytes(bytes(MIB))
    monkeypatch.setattr("drivelab.drives.purge.raw.Raw.write", lambda self, offset, data: None)
    with pytest.raises(OSError, match="does not read back"):
        canaries.write(str(file), Geometry(MIB, 512))
