"""Requests that overlap by address."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.replay.conflicts import Accesses, Order, Overlaps

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


@pytest.mark.parametrize("readers", [2, 64])
@given(accesses, st.sampled_from([1, 3, 100]), st.sampled_from([2, 1 << 22]))
def test_every_conflict_is_ordered_by_waits(
    readers: int, rows: list[tuple[int, int, bool, int, int]], size: int, pairs: int
) -> None:
    """All conflicting requests are connected by waits, and no wait connects others."""
    order, every = Order(), made(rows)
    records = 2 * np.arange(len(rows)) + 5
    connected: list[set[int]] = [set() for _ in rows]
    with (
        patch("drivelab.replay.conflicts._MOST_PAIRS", pairs),
        patch("drivelab.replay.conflicts.MOST_READERS", readers),
    ):
        for part in batches(len(rows), size):
            waits = list(zip(*(column.tolist() for column in order.of(every.part(part), records[part])), strict=True))
            assert waits == sorted(set(waits), key=lambda wait: (wait[0], -wait[1]))
            for later, earlier in (((later - 5) // 2, (earlier - 5) // 2) for later, earlier in waits):
                assert earlier < later
                assert conflict(rows, earlier, later) or (readers == 2 and not rows[earlier][2] | rows[later][2])
                connected[later] |= {earlier} | connected[earlier]
    for b in range(len(rows)):
        assert {a for a in range(b) if conflict(rows, a, b)} <= connected[b]


def test_a_read_of_a_hot_block_is_forgotten_after_more_reads() -> None:
    order = Order()
    count = 10_000
    reads = Accesses(np.zeros(count, np.int64), np.full(count, 4096), np.zeros(count, np.bool_))
    order.of(reads, np.arange(count))
    later, earlier = order.of(reads.part(slice(1))._replace(changes=np.ones(1, np.bool_)), np.array([count]))
    assert earlier.tolist() == list(range(count - 1, count - 65, -1))
    assert set(later.tolist()) == {count}
