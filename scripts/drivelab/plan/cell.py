"""The cell: one workload for one span of time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
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
    block_sizes: tuple[Mapping[str, Any], ...] | None = None
    """A distribution: `block_size_bytes` and `share` of the I/Os, which add up to 1; ascending, `block_size_bytes` of
    the cell is the least of them."""
    zones: tuple[Mapping[str, Any], ...] | None = None
    """Where random I/Os go: the first `range_share` of the active range gets `share` of the I/Os, the next one the next
    and so on; both add up to 1. None: everywhere alike."""
    zipf: float | None = None
    """Random I/Os go to blocks by Zipf's law with this exponent, the blocks in a random order (as fio has it)."""
    alignment_bytes: int | None = None
    """Offsets are multiples of it, plus `alignment_offset_bytes`; None: of the block, or of the least one."""
    alignment_offset_bytes: int = 0
    """Shift of every offset from the start of the drive: what makes I/O unaligned."""
    range_bytes: int | None = None
    """Length of the active range in bytes, in the place of `range_share`."""
    segments: int | None = None
    """The active range is cut into so many equal parts, spread evenly over the drive; random I/Os go to one part after
    another, anywhere within it."""
    rate_iops: float | None = None
    """No more I/Os a second than this, all threads together."""
    entropy: float | None = None
    """Share of every block that is random data, the rest zeros; None: all of it."""
    beside: Mapping[str, Any] | None = None
    """A second workload at the same time: `pattern`, `read_share`, `block_size_bytes`, `threads`, `queue_depth`. One of
    the two only reads, the other only writes, so that each is told by its direction."""
    title: str | None = None
    """What the workload is called, where its parameters say too little."""

    def __post_init__(self) -> None:
        for name in ("streams", "block_sizes", "zones"):
            if getattr(self, name) is not None:  # a list where it comes out of JSON
                object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def largest_block_bytes(self) -> int:
        """Bytes of the largest I/O."""
        several = self.streams or self.block_sizes
        if several is not None:
            return max(int(one["block_size_bytes"]) for one in several)
        return self.block_size_max_bytes or self.block_size_bytes

    @property
    def total_threads(self) -> int:
        """Of both workloads where there are two."""
        return self.threads + (int(self.beside["threads"]) if self.beside is not None else 0)

    @property
    def workload(self) -> str:
        """Name in the words of the PTS, for example `RND 4KiB 65/35`; `RND 4KiB-1024KiB 0/100` with several sizes.

        What is out of the ordinary follows, for example `RND 4KiB 0/100, unaligned by 512B`.
        """
        if self.title is not None:
            return self.title
        if self.pattern == COMPOSITE:
            return COMPOSITE
        size = format_size(self.block_size_bytes)
        if self.largest_block_bytes != self.block_size_bytes:
            size += f"-{format_size(self.largest_block_bytes)}"
        if self.block_sizes is not None:
            size += " mix"
        name = f"{_SHORT[self.pattern]} {size} {self.read_share}/{100 - self.read_share}"
        return ", ".join([name, *self._particulars()])

    def _particulars(self) -> Iterator[str]:
        if self.zones is not None:
            yield f"{len(self.zones)} zones"
        if self.zipf is not None:
            yield f"Zipf {self.zipf:g}"
        if self.alignment_offset_bytes:
            yield f"unaligned by {format_size(self.alignment_offset_bytes)}"
        if self.range_bytes is not None:
            yield f"range {format_size(self.range_bytes)}"
        if self.segments is not None:
            yield f"{self.segments} segment{'s' if self.segments > 1 else ''}"
        if self.rate_iops is not None:
            yield f"at most {self.rate_iops:g} IOPS"
        if self.entropy is not None:
            yield f"entropy {100 * self.entropy:g}%"
        if self.beside is not None:
            yield f"beside {Cell(**self.beside).label}"

    @property
    def label(self) -> str:
        """Workload with threads and queue depth, for example `RND 4KiB 65/35 T4Q32`."""
        demand = f"T{self.threads}Q{self.queue_depth}"
        if self.beside is None or self.title is not None:
            return f"{self.workload} {demand}"
        return f"{replace(self, beside=None).workload} {demand}, beside {Cell(**self.beside).label}"

    def to_mapping(self) -> dict[str, Any]:
        """JSON-able, without the fields that are not set."""
        found = {key: value for key, value in asdict(self).items() if value is not None}
        if not self.alignment_offset_bytes:
            del found["alignment_offset_bytes"]
        for name in ("streams", "block_sizes", "zones"):
            if name in found:
                found[name] = [dict(one) for one in found[name]]
        return found
