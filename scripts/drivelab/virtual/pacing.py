"""Issue times of each thread in cells with a limit of I/Os per second, as in fio."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator
from math import inf

_Issue = Callable[[int, float], tuple[float, float, bool, int]]
"""Issues a thread's next I/O at a time; returns times of completion and submission, whether it reads, length."""


def paced_loop(
    issue: _Issue, depths: list[int], interval_us: float, start_us: float, end_us: float, volume_bytes: float
) -> Generator[tuple[float, float, bool, int], bool | None, None]:
    """Yield the I/Os of threads with queue depths `depths`; each I/O is due `interval_us` after the thread's last.

    The first I/O is due at once. A thread issues no I/O before it is due. A late thread fills its queue. An early
    thread waits for all of its I/Os in flight, then until the next I/O is due (fio's backend.c, rate_ddir: fio reaps
    I/Os in flight before the thread sleeps). Ends when True is sent.
    """
    issued = [0] * len(depths)
    in_flight = [0] * len(depths)
    ahead = [False] * len(depths)
    order = 0
    events: list[tuple[float, int, int, tuple[float, float, bool, int] | None]] = []
    """Heap of (time, order, thread, completion); completion None means that the thread wakes up."""

    def fill_queue(thread: int, now_us: float) -> None:
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
