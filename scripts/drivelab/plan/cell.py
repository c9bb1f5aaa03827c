"""The cell: one workload for one span of time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from drivelab.units import format_size

COMPOSITE = "composite"
"""Pattern of a cell whose I/Os belong to several streams, each of a block size and a pattern of its own."""
_SHORT = {"random": "RND", "sequential": "SEQ"}


@dataclass(frozen=True)
class Cell:
    """What fio, the native engine or the virtual clock in their place, is asked to do once."""

    pattern: str
    """`random`, `sequential` or `composite`."""
    read_share: int
    """Percentage of the I/Os that read, 0 to 100. Of a composite rounded, to 0 or 100 only where all
    I/Os are of one kind."""
    block_size_bytes: int
    """Of every I/O; the least where there is a largest; of a composite the mean over its I/Os, rounded."""
    threads: int
    queue_depth: int
    """Outstanding I/Os per thread."""
    runtime_s: float | None = None
    """Time limit; without `volume_bytes` the cell lasts just that long."""
    volume_bytes: int | None = None
    """Bytes that all threads together transfer at the most; with `runtime_s`, whichever comes first."""
    range_start: float = 0.0
    """Start of the active range as a fraction of the capacity."""
    range_share: float = 1.0
    """Length of the active range as a fraction of the capacity."""
    slice_s: float | None = None
    """Ask for a cumulative status every so many seconds: a soak is one process cut into slices."""
    block_size_max_bytes: int | None = None
    """Largest block: sizes are multiples of `block_size_bytes` up to this one, each as likely as any other."""
    streams: tuple[Mapping[str, Any], ...] | None = None
    """Of a composite: `operation` (read or write), `block_size_bytes`, `pattern` (random or sequential) and `share` of
    the I/Os, which add up to 1."""

    def __post_init__(self) -> None:
        if self.streams is not None:  # a list where it comes out of JSON
            object.__setattr__(self, "streams", tuple(self.streams))

    @property
    def largest_block_bytes(self) -> int:
        """Bytes of the largest I/O."""
        if self.streams is not None:
            return max(int(one["block_size_bytes"]) for one in self.streams)
        return self.block_size_max_bytes or self.block_size_bytes

    @property
    def workload(self) -> str:
        """Name in the words of the PTS, for example `RND 4KiB 65/35`; `RND 4KiB-1024KiB 0/100` with several sizes."""
        if self.pattern == COMPOSITE:
            return COMPOSITE
        size = format_size(self.block_size_bytes)
        if self.block_size_max_bytes is not None:
            size += f"-{format_size(self.block_size_max_bytes)}"
        return f"{_SHORT[self.pattern]} {size} {self.read_share}/{100 - self.read_share}"

    @property
    def label(self) -> str:
        """Workload with threads and queue depth, for example `RND 4KiB 65/35 T4Q32`."""
        return f"{self.workload} T{self.threads}Q{self.queue_depth}"

    def to_mapping(self) -> dict[str, Any]:
        """JSON-able, without the fields that are not set."""
        found = {key: value for key, value in asdict(self).items() if value is not None}
        if self.streams is not None:
            found["streams"] = [dict(one) for one in self.streams]
        return found
