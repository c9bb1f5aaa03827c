"""Draw the offset and size of a thread's next I/O on the virtual clock.

All rules are those of fio 3.33, so a cell has the same footprint on a block device and in simulated time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from random import Random

import numpy as np

from drivelab.fio.early_end import OPERATIONS
from drivelab.plan.cell import TRIM
from drivelab.plan.expressible import percents
from drivelab.plan.ranges import Part

Draw = Callable[[int], tuple[int, int, int]]
"""Takes a thread; returns its next I/O: place in OPERATIONS, offset and length in bytes."""
_GOLDEN_RATIO_64 = 0x61C8864680B583EB
"""hash.h: the factor with which fio spreads Zipf ranks over the blocks."""
_MOST_TERMS = 10_000_000
"""lib/zipf.c: fio sums at most this many terms of the zeta function."""


def draw_of(part: Part, rng: Random) -> Draw:
    """Return the I/Os of one workload; a sequential thread restarts before an I/O that would exceed its range."""
    if part.cell.operation == TRIM:
        places = draw_of(replace(part, cell=replace(part.cell, operation=None)), rng)
        return lambda thread: (OPERATIONS.index(TRIM), *places(thread)[1:])
    cell = part.cell
    if cell.pattern == "sequential":
        return _sequential(part, rng)
    special = (cell.block_sizes, cell.zones, cell.zipf, part.segments)
    if cell.alignment_bytes in (None, cell.block_size_bytes) and all(option is None for option in special):
        return _plain(part, rng)
    return _random(part, rng)


def combined(draws: Sequence[tuple[Draw, int]], apart: bool) -> Draw:
    """Combine workloads, each with its number of threads: these follow each other.

    `apart` numbers the operations of each workload separately, as in `Completion`.
    """
    by_thread = [
        (draw, thread, len(OPERATIONS) * number if apart else 0)
        for number, (draw, threads) in enumerate(draws)
        for thread in range(threads)
    ]

    def draw(thread: int) -> tuple[int, int, int]:
        own, number, first = by_thread[thread]
        operation, offset, size = own(number)
        return first + operation, offset, size

    return draw


def _plain(part: Part, rng: Random) -> Draw:
    """Draw random accesses of the usual cell, with little work for each I/O: one size or a range, anywhere."""
    block, start = part.cell.block_size_bytes, part.start_bytes
    blocks, largest = part.length_bytes // block, part.cell.largest_block_bytes // block
    random, read_share = rng.random, part.cell.read_share / 100

    def draw(thread: int) -> tuple[bool, int, int]:
        reads = random() < read_share
        size = 1 + int(random() * largest) if largest > 1 else 1
        return reads, start + int(random() * (blocks - size + 1)) * block, size * block

    return draw


def _sequential(part: Part, rng: Random) -> Draw:
    """Draw sequential blocks of one size, a range or a distribution of sizes."""
    random, read_share, size_of = rng.random, part.cell.read_share / 100, _sizes(part, rng)
    start, length = part.start_bytes, part.length_bytes
    following = [0] * (2 * part.cell.threads)

    def draw(thread: int) -> tuple[bool, int, int]:
        reads, size = random() < read_share, size_of()
        stream = 2 * thread + reads
        offset = following[stream] if following[stream] + size <= length else 0
        following[stream] = offset + size
        return reads, start + thread * length + offset, size

    return draw


def _random(part: Part, rng: Random) -> Draw:
    """Draw the offset first, then a size that fits before the end of the range."""
    random, read_share, size_of = rng.random, part.cell.read_share / 100, _sizes(part, rng)
    offset_of = _offsets(part, rng)
    end = part.start_bytes + part.length_bytes
    one_size = part.cell.largest_block_bytes == part.cell.block_size_bytes

    def draw(thread: int) -> tuple[bool, int, int]:
        reads, offset, size = random() < read_share, offset_of(thread), size_of()
        while not one_size and offset + size > end:
            size = size_of()
        return reads, offset, size

    return draw


def _sizes(part: Part, rng: Random) -> Callable[[], int]:
    cell, random = part.cell, rng.random
    least = cell.block_size_bytes
    if cell.block_sizes is not None:
        sizes = [int(entry["block_size_bytes"]) for entry in cell.block_sizes]
        bounds = list(accumulate(percent / 100 for percent in percents(cell.block_sizes, "share")))[:-1]
        return lambda: sizes[bisect_right(bounds, random())]
    number = cell.largest_block_bytes // least
    return (lambda: least * (1 + int(random() * number))) if number > 1 else (lambda: least)


def _offsets(part: Part, rng: Random) -> Callable[[int], int]:
    """Return the offset of a thread's next I/O (fio's io_u.c: last_block, and the functions for each distribution)."""
    random, unit, start = rng.random, part.least_unit_bytes, part.start_bytes
    length = part.length_bytes if part.segments is None else part.segments.length_bytes
    units = (length - max(part.cell.block_size_bytes - unit, 0)) // unit
    if part.segments is not None:
        number, distance = part.segments.number, part.segments.distance_bytes
        turn = [0] * part.cell.threads

        def in_segment(thread: int) -> int:
            segment = turn[thread]
            turn[thread] = segment + 1 if segment + 1 < number else 0
            return start + segment * distance + int(random() * units) * unit

        return in_segment
    if part.cell.zones is not None:
        ends = list(accumulate(percents(part.cell.zones, "range_share")))
        bounds = list(accumulate(percent / 100 for percent in percents(part.cell.zones, "share")))[:-1]
        zones = [(units * low // 100, units * (high - low) // 100) for low, high in zip([0, *ends], ends, strict=False)]

        def in_zone(thread: int) -> int:
            first, number = zones[bisect_right(bounds, random())]
            return start + (first + int(random() * number)) * unit

        return in_zone
    if part.cell.zipf is not None:
        block_of = zipf_blocks(part.cell.zipf, length // unit, rng)
        return lambda thread: start + block_of() * unit
    return lambda thread: start + int(random() * units) * unit


def zipf_blocks(exponent: float, blocks: int, rng: Random) -> Callable[[], int]:
    """Draw block numbers by Zipf's law: rank by the method of Gray et al. (SIGMOD 1994), rank hashed to a block.

    Follows lib/zipf.c, where several ranks may share a block.
    """
    random = rng.random
    terms = np.arange(1, min(blocks, _MOST_TERMS) + 1, dtype=np.float64) ** -exponent
    zeta, second = float(terms.sum()), 1 + 0.5**exponent
    if blocks < 3:
        alpha = eta = 0.0
    else:
        alpha = 1 / (1 - exponent)
        eta = (1 - (2 / blocks) ** (1 - exponent)) / (1 - second / zeta)

    def draw() -> int:
        uniform = random()
        scaled = uniform * zeta
        if scaled < 1:
            rank = 0
        elif scaled < second:
            rank = 1
        else:
            rank = int(blocks * (eta * uniform - eta + 1) ** alpha)
        return (rank * _GOLDEN_RATIO_64 & 0xFFFFFFFFFFFFFFFF) % blocks

    return draw
