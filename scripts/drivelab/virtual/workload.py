"""Workloads on the virtual clock: who asks a simulated drive for what, and when it is answered."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Generator
from itertools import accumulate
from math import inf
from random import Random

from drivelab.fio.expressible import refuse_inexpressible, workloads_of
from drivelab.fio.ranges import parts_of
from drivelab.plan.cell import Cell
from drivelab.replay.streams import streams_of
from drivelab.virtual.access import Draw, beside, draw_of
from drivelab.virtual.faults import Answering
from drivelab.virtual.model import DriveModel
from drivelab.virtual.pacing import paced_loop

Completion = tuple[float, float, bool, int]
"""Time of completion and of submission in microseconds, whether it reads, length in bytes."""


def closed_loop(drive: Answering, cell: Cell, start_us: float, rng: Random) -> Generator[Completion, bool | None, None]:
    """Run a cell from `start_us` on: every thread keeps its queue full and issues anew on each completion.

    Yields in the order of completion; I/Os in flight at the end of the runtime are waited for and count, as with fio.
    The runtime ends when True is sent.
    Raises UserError if the active range is too small for one block of each thread, or of each sequential stream, and
    for a cell that fio cannot be asked for.
    """
    draw = (_single_or_two if cell.streams is None else _composite)(cell, drive.model, rng)
    end_us = inf if cell.runtime_s is None else start_us + 1e6 * cell.runtime_s
    bytes_left = inf if cell.volume_bytes is None else max(cell.volume_bytes, 1)
    if bytes_left == end_us == inf:
        raise ValueError("a cell needs a runtime or a volume")
    depths = [one.queue_depth for one in workloads_of(cell) for _ in range(one.threads)]
    submit = drive.submit
    if cell.rate_iops is not None:

        def paced(thread: int, now_us: float) -> Completion:
            reads, offset, size = draw(thread)
            return submit(now_us, "read" if reads else "write", offset, size), now_us, reads, size

        interval_us = 1e6 * cell.threads / cell.rate_iops
        yield from paced_loop(paced, depths, interval_us, start_us, end_us, bytes_left)
        return
    order = 0
    pending: list[tuple[float, int, int, float, bool, int]] = []

    def issue(thread: int, now_us: float) -> tuple[float, int, int, float, bool, int]:
        nonlocal order, bytes_left
        reads, offset, size = draw(thread)
        order += 1
        bytes_left -= size
        done_us = submit(now_us, "read" if reads else "write", offset, size)
        return done_us, order, thread, now_us, reads, size

    for filled in range(max(depths)):
        for thread, depth in enumerate(depths):
            if filled < depth and bytes_left > 0:
                pending.append(issue(thread, start_us))
    heapq.heapify(pending)
    while pending:
        done_us, _, thread, issued_us, reads, size = pending[0]
        if (yield done_us, issued_us, reads, size):
            end_us = -inf
        if done_us < end_us and bytes_left > 0:
            heapq.heapreplace(pending, issue(thread, done_us))
        else:
            heapq.heappop(pending)


def _single_or_two(cell: Cell, model: DriveModel, rng: Random) -> Draw:
    """I/Os of the workload of a cell, or of both."""
    parts = parts_of(cell, model.capacity_bytes, model.logical_block_bytes)
    draws = [draw_of(part, rng) for part in parts]
    return draws[0] if len(draws) == 1 else beside(draws[0], cell.threads, draws[1])


def _composite(cell: Cell, model: DriveModel, rng: Random) -> Draw:
    """I/Os of several streams, which all threads share."""
    refuse_inexpressible(cell)
    streams = streams_of(cell, model.capacity_bytes, model.logical_block_bytes)
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
