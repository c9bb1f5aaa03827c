"""Requests that overlap by address."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from drivelab.replay.overlaps import Overlaps
from drivelab.trace.statistics.batch import READ, WRITE

accesses = st.lists(
    st.tuples(
        st.sampled_from([READ, WRITE]), st.integers(0, 12), st.integers(0, 5), st.integers(0, 4), st.integers(-1, 12)
    ),
    min_size=1, max_size=30,
)  # fmt: skip
"""Operation, begin, length, time since the request before it, and duration (-1: unknown)."""
Columns = tuple[npt.NDArray[np.int64], ...]


def conflicts(columns: Columns) -> list[bool]:
    """Return which requests begin while an earlier one that they conflict with is in flight, by comparing all pairs."""
    operation, begin, length, start, end = columns
    met = np.maximum(begin[:, None], begin) < np.minimum((begin + length)[:, None], begin + length)
    met &= (operation[:, None] != READ) | (operation != READ)
    met &= (np.arange(begin.size)[:, None] > np.arange(begin.size)) & (start[:, None] < end)
    return met.any(axis=1).tolist()


def counts(columns: Columns, size: int) -> list[int]:
    """Return the count after each batch of `size` requests."""
    overlaps, result = Overlaps(), []
    for at in range(0, columns[0].size, size):
        overlaps.add(*(column[at : at + size] for column in columns))
        result.append(overlaps.count)
    return result


@given(accesses, st.sampled_from([1, 3, 100]), st.sampled_from([1, 1000, 4096, 300_000, 1 << 54]), st.data())
def test_overlaps_in_flight_agree_with_a_simple_search(
    rows: list[tuple[int, int, int, int, int]], size: int, scale: int, data: st.DataObject
) -> None:
    """Short and long requests are listed under stretches of different lengths."""
    sizes = data.draw(st.lists(st.sampled_from([1, scale]), min_size=len(rows), max_size=len(rows)))
    operation, begin, length, pause, lasting = np.array(rows, np.int64).T
    start = np.cumsum(pause)
    end = np.where(lasting >= 0, start + lasting, -(1 << 63))
    columns = (operation, begin * scale, length * np.array(sizes, np.int64), start, end)
    assert counts(columns, size) == np.cumsum(conflicts(columns))[size - 1 :: size].tolist() + (
        [sum(conflicts(columns))] if len(rows) % size else []
    )


def test_overlaps_among_many_in_flight() -> None:
    """More requests are in flight than the table first has space for, and most end again."""
    dice, rows = np.random.default_rng(3), 6000
    length = dice.choice([512, 4096, 5000, 1 << 20], rows)
    begin = dice.integers(0, 1 << 31, rows) // 512 * 512
    start = np.arange(rows)
    end = start + dice.choice([3, 4000], rows, p=(0.3, 0.7))
    columns = (np.where(dice.random(rows) < 0.5, WRITE, READ), begin, length, start, end)
    expected = sum(conflicts(columns))
    assert 100 < expected < rows - 100
    assert counts(columns, rows) == [expected]
