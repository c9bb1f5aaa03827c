"""Measure that code keeps within a limit of memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def bounded_memory(most_bytes: int) -> Iterator[None]:
    """Fail if the objects of Python that the block makes take more than `most_bytes` at one time."""
    tracemalloc.start()
    try:
        yield
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < most_bytes, f"took {peak_bytes / 2**20:.0f} MiB"
