"""Count touched blocks exactly, in a bitmap over touched parts of the device.

A bitmap needs far less memory than the extents of 100 million requests, in SQL or elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from drivelab.trace.statistics.batch import READ, WRITE, Batch, Ints, Words, union

BLOCK_SHIFT = 12
WORD_SHIFT = 6
"""A word of the bitmap covers 64 blocks: 256 KiB."""
MOST_WORDS = 1 << 22
"""Most touched words, anywhere on the device: 1 TiB in 4 KiB blocks; four arrays of 32 MiB."""
PIECE = 1 << 18
"""Most members of ranges in memory at a time."""
COLUMNS = ("queue_ns", "operation", "offset_bytes", "length_bytes")
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


def touched_words(database: duckdb.DuckDBPyConnection) -> tuple[Ints, int]:
    """Return the numbers of the words that the reads and writes of `trace` touch, ascending, and the shift to blocks.

    Blocks have 4 KiB. If that takes more than MOST_WORDS words, blocks have the smallest sufficient power of two.
    """
    shift = BLOCK_SHIFT
    while True:
        database.execute(f"""
            CREATE OR REPLACE TEMP TABLE ranges AS
            SELECT offset_bytes >> {shift + WORD_SHIFT} AS low, max(end_bytes - 1) >> {shift + WORD_SHIFT} AS high
            FROM trace WHERE transfer GROUP BY low""")
        (count,) = database.execute("SELECT count(*) FROM ranges").fetchone() or (0,)
        if count <= MOST_WORDS:
            ranges = database.execute("SELECT low, high FROM ranges").fetchnumpy()
            begin, end = union(ranges["low"].copy(), ranges["high"] + 1)
            if float((end - begin).sum(dtype=np.float64)) <= MOST_WORDS:
                return np.concatenate([np.zeros(0, np.int64), *(words for _, words in _members(begin, end))]), shift
        shift += 1


def touched_blocks(
    batches: Iterable[pa.RecordBatch], words: Ints, shift: int, interval_of: Callable[[Ints], Ints], count: int
) -> pd.DataFrame:
    """Return numbers of blocks in each of `count` intervals, a row each; `batches` have COLUMNS.

    Columns: `new` blocks, touched for the first time in the trace; `read` and `written`, for the first time in that
    direction; `working`, for the first time in the interval.
    """
    done = {direction: np.zeros(words.size, np.uint64) for direction in (READ, WRITE)}
    of_interval, current = np.zeros(words.size, np.uint64), -1
    counts = np.zeros((count, 4), np.int64)
    for requests in batches:
        batch = Batch(requests)
        nth = interval_of(batch.queue_ns)
        for begin, end in pairwise([0, *(np.flatnonzero(np.diff(nth)) + 1).tolist(), batch.rows]):
            if nth[begin] != current:
                of_interval.fill(0)
                current = int(nth[begin])
            for direction, other in ((READ, WRITE), (WRITE, READ)):
                moved = np.flatnonzero(batch.transfers[begin:end] & (batch.operation[begin:end] == direction)) + begin
                first, last = batch.offset_bytes[moved] >> shift, (batch.end_bytes[moved] - 1) >> shift
                for word, bits in _masks(*union(first, last + 1)):
                    at = np.searchsorted(words, word)
                    before, here = done[direction][at], of_interval[at]
                    new, new_of_all = _count(bits & ~before), _count(bits & ~(before | done[other][at]))
                    read, written = (new, 0) if direction == READ else (0, new)
                    counts[current] += (new_of_all, read, written, _count(bits & ~here))
                    done[direction][at] = before | bits
                    of_interval[at] = here | bits
    return pd.DataFrame(counts, columns=["new", "read", "written", "working"])


def _members(begin: Ints, end: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield pieces of (extent number, member), ascending within each extent."""
    after: Ints = np.cumsum(end - begin)
    total = int(after[-1]) if after.size else 0
    for low in range(0, total, PIECE):
        place = np.arange(low, min(low + PIECE, total), dtype=np.int64)
        ranges = np.asarray(np.searchsorted(after, place, side="right"), np.int64)
        yield ranges, end[ranges] - (after[ranges] - place)


def _masks(begin: Ints, end: Ints) -> Iterator[tuple[Ints, Words]]:
    """Yield words of disjoint ascending extents of blocks, and the bits of each word's blocks."""
    last = end - 1
    for ranges, words in _members(begin >> WORD_SHIFT, (last >> WORD_SHIFT) + 1):
        low, high = begin[ranges], last[ranges]
        bits = np.where(words == low >> WORD_SHIFT, _ALL << (low & 63).astype(np.uint64), _ALL)
        bits &= np.where(words == high >> WORD_SHIFT, _ALL >> (63 - (high & 63)).astype(np.uint64), _ALL)
        begins = np.flatnonzero(np.concatenate([[True], words[1:] != words[:-1]]))
        yield words[begins], np.bitwise_or.reduceat(bits, begins)


def _count(bits: Words) -> int:
    return int(np.bitwise_count(bits).sum())
