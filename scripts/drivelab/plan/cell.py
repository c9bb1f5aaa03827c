"""The cell: one workload for one span of time."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from drivelab.units import format_size


@dataclass(frozen=True)
class Cell:
    """What fio, or the virtual clock in its place, is asked to do once."""

    pattern: str
    """`random` or `sequential`."""
    read_share: int
    """Percentage of the I/Os that read, 0 to 100."""
    block_size_bytes: int
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

    @property
    def workload(self) -> str:
        """Name in the words of the PTS, for example `RND 4KiB 65/35`."""
        pattern = "RND" if self.pattern == "random" else "SEQ"
        return f"{pattern} {format_size(self.block_size_bytes)} {self.read_share}/{100 - self.read_share}"

    @property
    def label(self) -> str:
        """Workload with threads and queue depth, for example `RND 4KiB 65/35 T4Q32`."""
        return f"{self.workload} T{self.threads}Q{self.queue_depth}"

    def to_mapping(self) -> dict[str, Any]:
        """JSON-able, without the fields that are not set."""
        return {key: value for key, value in asdict(self).items() if value is not None}
