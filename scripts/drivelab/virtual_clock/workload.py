"""Run workloads on the virtual clock: which thread issues which I/O, and when it completes."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator
from math import inf
from random import Random

from drivelab.fio.early_end import OPERATIONS, Completion
from drivelab.plan.cell import Cell
from drivelab.plan.expressible import directions_of, workloads_of
from drivelab.plan.ranges import parts_of
from drivelab.virtual.faults import Answering
from drivelab.virtual.model import DriveModel
from drivelab.virtual_clock.access import Draw, combined, draw_of

_Issue = Callable[[int, float], Completion]
"""Issues a thread's next I/O at a time."""


def paced_loop(
    issue: _Issue, depths: list[int], intervals_us: list[float], start_us: float, end_us: float, volume_bytes: float
) -> Generator[Completion, bool | None, None]:
    """Yield the I/Os of threads, each with its queue depth and the interval at which its I/Os are due; 0 for no limit.

    The first I/O is due at once. A thread issues no I/O before it is due. A late thread fills its queue. An early
    thread waits for all of its I/Os in flight, then until the next I/O is due (fio's backend.c, rate_ddir: fio reaps
    I/Os in flight before the thread sleeps). Ends when True is sent.
    """
    issued = [0] * len(depths)
    in_flight = [0] * len(depths)
    ahead = [False] * len(depths)
    order = 0
    events: list[tuple[float, int, int, Completion | None]] = []
    """Heap of (time, order, thread, completion); completion None means that the thread wakes up."""

    def fill_queue(thread: int, now_us: float) -> None:
        nonlocal order, volume_bytes
        while in_flight[thread] < depths[thread] and now_us < end_us and volume_bytes > 0:
            due_us = start_us + issued[thread] * intervals_us[thread]
            order += 1
            if due_us > now_us:
                ahead[thread] = True
                if not in_flight[thread] and due_us < end_us:
                    heapq.heappush(events, (due_us, order, thread, None))
                return
            completion = issue(thread, now_us)
            issued[thread] += 1
            in_flight[thread] += 1
            volume_bytes -= completion[3]
            heapq.heappush(events, (completion[0], order, thread, completion))

    for thread in range(len(depths)):
        fill_queue(thread, start_us)
    while events:
        now_us, _, thread, completion = heapq.heappop(events)
        if completion is not None:
            in_flight[thread] -= 1
            if (yield completion):
                end_us = -inf
        if not (ahead[thread] and in_flight[thread]):
            ahead[thread] = False
            fill_queue(thread, now_us)


def closed_loop(drive: Answering, cell: Cell, start_us: float, rng: Random) -> Generator[Completion, bool | None, None]:
    """Run a cell from `start_us`: every thread keeps its queue full and issues a new I/O on each completion.

    Yields in order of completion. I/Os in flight at the end of the runtime complete and count, as in fio. The runtime
    ends when True is sent.
    Raises UserError if the active range is too small for one block of each thread, or if fio cannot express the
    cell.
    """
    draw = _single_or_several(cell, drive.model, rng)
    end_us = inf if cell.runtime_s is None else start_us + 1e6 * cell.runtime_s
    bytes_left = inf if cell.volume_bytes is None else max(cell.volume_bytes, 1)
    if bytes_left == end_us == inf:
        raise ValueError("a cell needs a runtime or a volume")
    workloads = workloads_of(cell)
    depths = [workload.queue_depth for workload in workloads for _ in range(workload.threads)]
    submit, names = drive.submit, OPERATIONS * len(workloads)
    if any(workload.rate_iops is not None for workload in workloads):

        def paced(thread: int, now_us: float) -> Completion:
            operation, offset, size = draw(thread)
            return submit(now_us, names[operation], offset, size), now_us, operation, size

        intervals_us = [
            1e6 * workload.threads / workload.rate_iops if workload.rate_iops is not None else 0.0
            for workload in workloads
            for _ in range(workload.threads)
        ]
        yield from paced_loop(paced, depths, intervals_us, start_us, end_us, bytes_left)
        return
    order = 0
    pending: list[tuple[float, int, int, float, int, int]] = []

    def issue(thread: int, now_us: float) -> tuple[float, int, int, float, int, int]:
        nonlocal order, bytes_left
        operation, offset, size = draw(thread)
        order += 1
        bytes_left -= size
        done_us = submit(now_us, names[operation], offset, size)
        if cell.synchronous:
            done_us = submit(done_us, "flush", 0, 0)
        return done_us, order, thread, now_us, operation, size

    for filled in range(max(depths)):
        for thread, depth in enumerate(depths):
            if filled < depth and bytes_left > 0:
                pending.append(issue(thread, start_us))
    heapq.heapify(pending)
    while pending:
        done_us, _, thread, issued_us, operation, size = pending[0]
        if (yield done_us, issued_us, operation, size):
            end_us = -inf
        if done_us < end_us and bytes_left > 0:
            heapq.heapreplace(pending, issue(thread, done_us))
        else:
            heapq.heappop(pending)


def _single_or_several(cell: Cell, model: DriveModel, rng: Random) -> Draw:
    """Return the I/Os of a cell's workloads."""
    parts = parts_of(cell, model.capacity_bytes, model.logical_block_bytes)
    draws = [(draw_of(part, rng), part.cell.threads) for part in parts]
    return draws[0][0] if len(draws) == 1 else combined(draws, directions_of(cell) is None)
