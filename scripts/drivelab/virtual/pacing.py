"""Cells with a limit of I/Os a second: when each thread may issue, as fio has it."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator
from math import inf

_Issue = Callable[[int, float], tuple[float, float, bool, int]]
"""Has a thread's next I/O done from a time on: times of completion and of submission, whether it reads, length."""


def paced_loop(
    issue: _Issue, depths: list[int], interval_us: float, start_us: float, end_us: float, volume_bytes: float
) -> Generator[tuple[float, float, bool, int], bool | None, None]:
    """I/Os of threads of these queue depths, each of which is due `interval_us` after the thread's one before.

    The first is due at once. No I/O is issued before it is due; a thread that is behind issues as many as its queue
    takes. One that is ahead waits for all it has in flight, then for the time when the next is due (fio's backend.c,
    rate_ddir: what is in flight is reaped before the thread sleeps). Ends when True is sent.
    """
    issued = [0] * len(depths)
    in_flight = [0] * len(depths)
    ahead = [False] * len(depths)
    order = 0
    events: list[tuple[float, int, int, tuple[float, float, bool, int] | None]] = []
    """Heap of (time, order, thread, completion); without a completion the thread wakes up."""

    def go_on(thread: int, now_us: float) -> None:
        nonlocal order, volume_bytes
        while in_flight[thread] < depths[thread] and now_us < end_us and volume_bytes > 0:
            due_us = start_us + issued[thread] * interval_us
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
        go_on(thread, start_us)
    while events:
        now_us, _, thread, completion = heapq.heappop(events)
        if completion is not None:
            in_flight[thread] -= 1
            if (yield completion):
                end_us = -inf
        if not (ahead[thread] and in_flight[thread]):
            ahead[thread] = False
            go_on(thread, now_us)
