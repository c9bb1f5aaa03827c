"""Workloads on the virtual clock: who asks a simulated drive for what, and when it is answered."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from random import Random

from drivelab.errors import UserError
from drivelab.fio.job import active_range
from drivelab.plan.cell import Cell
from drivelab.units import format_size
from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.model import PAGE_BYTES

Completion = tuple[float, float, bool, int]
"""Time of completion and of submission in microseconds, whether it reads, length in bytes."""
Request = tuple[float, str, int, int]
"""Time in microseconds since the first request, operation as in `FlashDrive.submit`, offset and length in bytes."""


def closed_loop(drive: FlashDrive, cell: Cell, start_us: float, rng: Random) -> Iterator[Completion]:
    """Run a cell from `start_us` on: every thread keeps its queue full and issues anew on each completion.

    Yields in the order of completion; I/Os in flight at the end of the runtime are waited for and count, as with fio.
    Raises UserError if the active range is too small for one block of each thread.
    """
    next_offset = _offsets(cell, drive.model.capacity_bytes, rng)
    block = cell.block_size_bytes
    read_share = cell.read_share / 100
    end_us = float("inf") if cell.runtime_s is None else start_us + 1e6 * cell.runtime_s
    ios_left = -1 if cell.volume_bytes is None else max(-(-cell.volume_bytes // block), 1)
    if ios_left < 0 and cell.runtime_s is None:
        raise ValueError("a cell needs a runtime or a volume")
    submit, random = drive.submit, rng.random
    order = 0
    pending: list[tuple[float, int, int, float, bool]] = []

    def issue(thread: int, now_us: float) -> tuple[float, int, int, float, bool]:
        nonlocal order, ios_left
        order += 1
        ios_left -= 1
        reads = random() < read_share
        done_us = submit(now_us, "read" if reads else "write", next_offset(thread, reads), block)
        return done_us, order, thread, now_us, reads

    for _ in range(cell.queue_depth):
        for thread in range(cell.threads):
            if ios_left != 0:
                pending.append(issue(thread, start_us))
    heapq.heapify(pending)
    while pending:
        done_us, _, thread, issued_us, reads = pending[0]
        yield done_us, issued_us, reads, block
        if done_us < end_us and ios_left != 0:
            heapq.heapreplace(pending, issue(thread, done_us))
        else:
            heapq.heappop(pending)


def _offsets(cell: Cell, capacity_bytes: int, rng: Random) -> Callable[[int, bool], int]:
    """Where a thread's next read or write goes; a sequential stream starts over at the end of its stretch."""
    start, length = active_range(cell, capacity_bytes, PAGE_BYTES)
    block = cell.block_size_bytes
    blocks = length // block
    if blocks < 1:
        raise UserError(
            f"cell {cell.label}: the active range does not hold a block of {format_size(block)} for each thread; "
            "choose a smaller block, fewer threads or a larger range"
        )
    if cell.pattern == "random":
        random = rng.random
        return lambda thread, reads: start + int(random() * blocks) * block
    following = [0] * (2 * cell.threads)

    def sequential(thread: int, reads: bool) -> int:
        stream = 2 * thread + reads
        index = following[stream]
        following[stream] = (index + 1) % blocks
        return start + thread * length + index * block

    return sequential


def open_loop(drive: FlashDrive, requests: Iterable[Request], start_us: float) -> Iterator[Completion]:
    """Submit requests at their own times, however long the drive takes; yields reads and writes as they complete."""
    pending: list[tuple[float, int, float, bool, int]] = []
    for order, (time_us, operation, offset, length) in enumerate(requests):
        now_us = start_us + time_us
        while pending and pending[0][0] <= now_us:
            done_us, _, issued_us, reads, size = heapq.heappop(pending)
            yield done_us, issued_us, reads, size
        done_us = drive.submit(now_us, operation, offset, length)
        if operation in ("read", "write"):
            heapq.heappush(pending, (done_us, order, now_us, operation == "read", length))
    while pending:
        done_us, _, issued_us, reads, size = heapq.heappop(pending)
        yield done_us, issued_us, reads, size


def as_soon_as_possible(
    drive: FlashDrive, requests: Iterable[Request], start_us: float, queue_depth: int
) -> Iterator[Completion]:
    """Submit requests in their order with `queue_depth` outstanding; yields reads and writes as they complete."""
    pending: list[tuple[float, int, float, bool, int]] = []
    now_us = start_us
    for order, (_, operation, offset, length) in enumerate(requests):
        if len(pending) == queue_depth:
            now_us, _, issued_us, reads, size = heapq.heappop(pending)
            if size:
                yield now_us, issued_us, reads, size
        done_us = drive.submit(now_us, operation, offset, length)
        counted = length if operation in ("read", "write") else 0
        heapq.heappush(pending, (done_us, order, now_us, operation == "read", counted))
    while pending:
        done_us, _, issued_us, reads, size = heapq.heappop(pending)
        if size:
            yield done_us, issued_us, reads, size
