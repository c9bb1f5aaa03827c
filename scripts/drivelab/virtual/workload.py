"""Workloads on the virtual clock: who asks a simulated drive for what, and when it is answered."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate
from math import inf
from random import Random

from drivelab.errors import UserError
from drivelab.fio.job import active_range
from drivelab.plan.cell import Cell
from drivelab.replay.streams import streams_of
from drivelab.units import format_size
from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.model import PAGE_BYTES

Completion = tuple[float, float, bool, int]
"""Time of completion and of submission in microseconds, whether it reads, length in bytes."""
_Draw = Callable[[int], tuple[bool, int, int]]
"""A thread's next I/O: whether it reads, offset and length in bytes."""


def closed_loop(drive: FlashDrive, cell: Cell, start_us: float, rng: Random) -> Iterator[Completion]:
    """Run a cell from `start_us` on: every thread keeps its queue full and issues anew on each completion.

    Yields in the order of completion; I/Os in flight at the end of the runtime are waited for and count, as with fio.
    Raises UserError if the active range is too small for one block of each thread, or of each sequential stream.
    """
    draw = (_plain if cell.streams is None else _composite)(cell, drive.model.capacity_bytes, rng)
    end_us = inf if cell.runtime_s is None else start_us + 1e6 * cell.runtime_s
    bytes_left = inf if cell.volume_bytes is None else max(cell.volume_bytes, 1)
    if bytes_left == end_us == inf:
        raise ValueError("a cell needs a runtime or a volume")
    submit = drive.submit
    order = 0
    pending: list[tuple[float, int, int, float, bool, int]] = []

    def issue(thread: int, now_us: float) -> tuple[float, int, int, float, bool, int]:
        nonlocal order, bytes_left
        reads, offset, size = draw(thread)
        order += 1
        bytes_left -= size
        done_us = submit(now_us, "read" if reads else "write", offset, size)
        return done_us, order, thread, now_us, reads, size

    for _ in range(cell.queue_depth):
        for thread in range(cell.threads):
            if bytes_left > 0:
                pending.append(issue(thread, start_us))
    heapq.heapify(pending)
    while pending:
        done_us, _, thread, issued_us, reads, size = pending[0]
        yield done_us, issued_us, reads, size
        if done_us < end_us and bytes_left > 0:
            heapq.heapreplace(pending, issue(thread, done_us))
        else:
            heapq.heappop(pending)


def _plain(cell: Cell, capacity_bytes: int, rng: Random) -> _Draw:
    """I/Os of one pattern; a sequential thread starts over where the next block would go beyond its stretch."""
    start, length = active_range(cell, capacity_bytes, PAGE_BYTES)
    block = cell.block_size_bytes
    blocks = length // block
    largest = cell.largest_block_bytes // block
    if blocks < largest:
        raise UserError(
            f"cell {cell.label}: the active range does not hold a block of {format_size(largest * block)} for each "
            "thread; choose a smaller block, fewer threads or a larger range"
        )
    random, read_share = rng.random, cell.read_share / 100

    def size_in_blocks() -> int:
        return 1 + int(random() * largest) if largest > 1 else 1

    def at_random(thread: int) -> tuple[bool, int, int]:
        reads, size = random() < read_share, size_in_blocks()
        return reads, start + int(random() * (blocks - size + 1)) * block, size * block

    following = [0] * (2 * cell.threads)

    def in_turn(thread: int) -> tuple[bool, int, int]:
        reads, size = random() < read_share, size_in_blocks()
        stream = 2 * thread + reads
        index = following[stream] if following[stream] + size <= blocks else 0
        following[stream] = index + size
        return reads, start + thread * length + index * block, size * block

    return at_random if cell.pattern == "random" else in_turn


def _composite(cell: Cell, capacity_bytes: int, rng: Random) -> _Draw:
    """I/Os of several streams, which all threads share."""
    streams = streams_of(cell, capacity_bytes, PAGE_BYTES)
    bounds = list(accumulate(one.share for one in streams))[:-1]
    following = [0] * len(streams)
    random = rng.random

    def draw(thread: int) -> tuple[bool, int, int]:
        number = bisect_right(bounds, random())
        one = streams[number]
        if one.random:
            index = int(random() * one.blocks)
        else:
            index = following[number]
            following[number] = (index + 1) % one.blocks
        return one.reads, one.start_bytes + index * one.block_bytes, one.block_bytes

    return draw
