"""A protocol that measures all drives at the same time."""

from __future__ import annotations

_HEAD = """\
name: head-to-head
title: Random I/O on all drives at the same time
source: a test
description: a test
sources: {simultaneous: a test, condition.purge: a test, soak: a test}
simultaneous: true
condition: {purge: required}
measure:
"""


def protocol(slice_: str, *times: str, queue_depth: int) -> str:
    """Return its text: a soak of writes, then optionally one of reads, with these durations, in slices."""
    demand = f"block_size: 8KiB, threads: 1, queue_depth: {queue_depth}, slice: {slice_}"
    return _HEAD + "".join(
        f"  - soak: {{pattern: random, read_share: {share}, {demand}, until: {{time: {time}}}}}\n"
        for share, time in zip((0, 100), times, strict=False)
    )
