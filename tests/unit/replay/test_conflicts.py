"""Requests that overlap by address."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from drivelab.replay.conflicts import Accesses, Overlaps

accesses = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 5), st.booleans(), st.integers(0, 4), st.integers(-1, 12)),
    min_size=1, max_size=30,
)  # fmt: skip
"""Begin, length, whether it changes data, time since the request before it, and duration (-1: unknown)."""


def made(rows: list[tuple[int, int, bool, int, int]]) -> Accesses:
    begin, length, changes = (np.array([row[column] for row in rows]) for column in range(3))
    return Accesses(begin.astype(np.int64), (begin + length).astype(np.int64), changes.astype(np.bool_))


def conflict(rows: list[tuple[int, int, bool, int, int]], a: int, b: int) -> bool:
    begin, end = max(rows[a][0], rows[b][0]), min(rows[a][0] + rows[a][1], rows[b][0] + rows[b][1])
    return begin < end and (rows[a][2] or rows[b][2])


def batches(count: int, size: int) -> list[slice]:
    return [slice(at, at + size) for at in range(0, count, size)]


@given(accesses, st.sampled_from([1, 3, 100]), st.sampled_from([1, 1000, 4096, 300_000, 1 << 54]), st.data())
def test_overlaps_in_flight_agree_with_a_simple_search(
    rows: list[tuple[int, int, bool, int, int]], size: int, scale: int, data: st.DataObject
) -> None:
    """Short and long requests are listed under stretches of different lengths."""
    sizes = data.draw(st.lists(st.sampled_from([1, scale]), min_size=len(rows), max_size=len(rows)))
    rows = [(row[0] * scale, row[1] * size_, *row[2:]) for row, size_ in zip(rows, sizes, strict=True)]
    start = np.cumsum([row[3] for row in rows]).astype(np.int64)
    end = np.array([begin + row[4] if row[4] >= 0 else -(1 << 63) for begin, row in zip(start, rows, strict=True)])
    overlaps, every = Overlaps(), made(rows)
    result = [overlaps.of(every.part(part), start[part], end[part]) for part in batches(len(rows), size)]
    assert np.concatenate(result).tolist() == [
        any(conflict(rows, a, b) and end[a] > start[b] for a in range(b)) for b in range(len(rows))
    ]


def test_overlaps_among_many_in_flight() -> None:
    """More requests are in flight than the table first has space for, and most end again."""
    dice, rows = np.random.default_rng(3), 6000
    length = dice.choice([512, 4096, 5000, 1 << 20], rows)
    begin = dice.integers(0, 1 << 31, rows) // 512 * 512
    every = Accesses(begin, begin + length, dice.random(rows) < 0.5)
    start = np.arange(rows)
    end = start + dice.choice([3, 4000], rows, p=(0.3, 0.7))
    met = (begin[:, None] < every.end) & (begin < every.end[:, None]) & (every.changes[:, None] | every.changes)
    expected = (met & (start[:, None] > start) & (start[:, None] < end)).any(axis=1)
    assert 100 < expected.sum() < rows - 100
    assert Overlaps().of(every, start, end).tolist() == expected.tolist()
