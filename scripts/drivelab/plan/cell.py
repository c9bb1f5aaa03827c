"""The cell: one workload for one span of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from drivelab.core.units import format_size
from drivelab.criteria.repeats import FEWEST, MOST

_SHORT = {"random": "RND", "sequential": "SEQ"}
TRIM = "trim"
"""Operation of a workload that trims."""
_LISTS = ("block_sizes", "zones", "beside")


@dataclass(frozen=True)
class Cell:
    """One workload for fio, an open-loop load or the virtual clock."""

    pattern: str
    """`random` or `sequential`."""
    read_share: int
    """Percentage of the I/Os that read, 0 to 100."""
    block_size_bytes: int
    """Size of every I/O; the smallest of several sizes."""
    threads: int
    queue_depth: int
    """Outstanding I/Os per thread."""
    runtime_s: float | None = None
    """Time limit; without `volume_bytes` the exact duration."""
    volume_bytes: int | None = None
    """Limit of the bytes that all threads together transfer; with `runtime_s`, the first limit ends the cell."""
    range_start: float = 0.0
    """Start of the active range as a fraction of the capacity."""
    range_share: float = 1.0
    """Length of the active range as a fraction of the capacity."""
    slice_s: float | None = None
    """Interval of cumulative status reports: a soak is one process cut into slices."""
    block_size_max_bytes: int | None = None
    """Largest block: sizes are the multiples of `block_size_bytes` up to it, with equal probability."""
    block_sizes: tuple[Mapping[str, Any], ...] | None = None
    """Distribution of sizes, ascending: `block_size_bytes` and `share` of the I/Os. The shares add up to 1. The cell's
    `block_size_bytes` is the smallest size."""
    zones: tuple[Mapping[str, Any], ...] | None = None
    """Zones for random I/Os, in order: each has a `range_share` of the active range and receives a `share` of the I/Os.
    Both add up to 1. None: uniform."""
    zipf: float | None = None
    """Exponent of Zipf's law for random I/Os; the blocks are in random order, as in fio."""
    alignment_bytes: int | None = None
    """Offsets are multiples of this, plus `alignment_offset_bytes`; None: of the (smallest) block size."""
    alignment_offset_bytes: int = 0
    """Shift of every offset from the start of the drive; it makes I/O unaligned."""
    range_bytes: int | None = None
    """Length of the active range in bytes; replaces `range_share`."""
    segments: int | None = None
    """Number of equal parts of the active range, spread evenly over the drive. Random I/Os visit the parts in turn, at
    any offset within each."""
    rate_iops: float | None = None
    """Limit of I/Os per second of all threads together."""
    entropy: float | None = None
    """Share of every block that is random data; the rest is zeros. None: all is random."""
    operation: str | None = None
    """TRIM: every I/O discards its blocks; `read_share` is 0 then. None: I/Os read or write."""
    beside: tuple[Mapping[str, Any], ...] | None = None
    """Further workloads at the same time, each with `pattern`, `read_share`, `block_size_bytes`, `threads`,
    `queue_depth`, and possibly `operation`, `rate_iops`, `title` and a range. A single one may be given alone."""
    synchronous: bool | None = None
    """Each write goes through the page cache and returns when it is durable, as a database commits; in a file it
    appends. None: I/O bypasses the page cache, and a write returns when the drive acknowledges it."""
    registered: bool | None = None
    """Files and buffers are registered with io_uring once, instead of looked up and mapped for each I/O."""
    batch: int | None = None
    """Most I/Os that a thread submits, and collects, with one system call. None: each is submitted by itself."""
    polled: bool | None = None
    """Threads poll the drive for completions; it sends no interrupts."""
    nvme: bool | None = None
    """I/Os are NVMe commands to the namespace's character device, past the block layer. None: block I/O."""
    reuse_buffers: bool | None = None
    """Writes of every size reuse as many random buffers as are in flight, with a mark every 512 B. None: small blocks
    get new random data for each write."""
    title: str | None = None
    """Name of the workload, if its parameters say too little."""

    def __post_init__(self) -> None:
        for name in _LISTS:
            value = getattr(self, name)
            if value is not None:  # a list if it comes from JSON, or the single workload beside the cell's own
                object.__setattr__(self, name, (value,) if isinstance(value, Mapping) else tuple(value))

    @property
    def largest_block_bytes(self) -> int:
        """Return the bytes of the largest I/O."""
        if self.block_sizes is not None:
            return max(int(part["block_size_bytes"]) for part in self.block_sizes)
        return self.block_size_max_bytes or self.block_size_bytes

    @property
    def total_threads(self) -> int:
        """Return the threads of all workloads."""
        return self.threads + sum(int(workload["threads"]) for workload in self.beside or ())

    @property
    def direction(self) -> str | None:
        """Return what all I/Os of the own workload do: read, write or trim; None for a mix."""
        if self.operation is not None:
            return self.operation
        return {100: "read", 0: "write"}.get(self.read_share)

    @property
    def workload(self) -> str:
        """Return the PTS name, such as `RND 4KiB 65/35` or `RND 4KiB-1024KiB 0/100`.

        Special parameters follow, for example `RND 4KiB 0/100, unaligned by 512B`.
        """
        if self.title is not None:
            return self.title
        size = format_size(self.block_size_bytes)
        if self.largest_block_bytes != self.block_size_bytes:
            size += f"-{format_size(self.largest_block_bytes)}"
        if self.block_sizes is not None:
            size += " mix"
        mix = f"{self.read_share}/{100 - self.read_share}" if self.operation is None else "TRIM"
        name = f"{_SHORT[self.pattern]} {size} {mix}"
        return ", ".join([name, *self._particulars()])

    def _particulars(self) -> Iterator[str]:
        if self.zones is not None:
            yield f"{len(self.zones)} zones"
        if self.zipf is not None:
            yield f"Zipf {self.zipf:g}"
        if self.alignment_offset_bytes:
            yield f"unaligned by {format_size(self.alignment_offset_bytes)}"
        if self.range_start:
            yield f"from {100 * self.range_start:g}%"
        if self.range_bytes is not None:
            yield f"range {format_size(self.range_bytes)}"
        if self.segments is not None:
            yield f"{self.segments} segment{'s' if self.segments > 1 else ''}"
        if self.rate_iops is not None:
            yield f"at most {self.rate_iops:g} IOPS"
        if self.entropy is not None:
            yield f"entropy {100 * self.entropy:g}%"
        if self.synchronous:
            yield "fsync"
        yield from submission(vars(self))
        if self.reuse_buffers:
            yield "buffers reused"
        if self.beside is not None:
            yield self._others

    @property
    def _others(self) -> str:
        return f"beside {' and '.join(Cell(**workload).label for workload in self.beside or ())}"

    @property
    def label(self) -> str:
        """Return workload, threads and queue depth, such as `RND 4KiB 65/35 T4Q32`."""
        demand = f"T{self.threads}Q{self.queue_depth}"
        if self.beside is None or self.title is not None:
            return f"{self.workload} {demand}"
        return f"{replace(self, beside=None).workload} {demand}, {self._others}"

    def to_mapping(self) -> dict[str, Any]:
        """Return the fields that are set, ready for JSON."""
        fields = {key: value for key, value in asdict(self).items() if value is not None}
        if not self.alignment_offset_bytes:
            del fields["alignment_offset_bytes"]
        for name in _LISTS:
            if name in fields:
                fields[name] = [dict(part) for part in fields[name]]
        if len(fields.get("beside", ())) == 1:
            (fields["beside"],) = fields["beside"]
        return fields


def submission(cell: Mapping[str, Any]) -> Iterator[str]:
    """Yield how the I/Os of a plan's cell are submitted and completed, where it differs from fio's defaults."""
    if cell.get("registered"):
        yield "registered"
    if cell.get("batch") is not None:
        yield f"batches of {cell['batch']}"
    if cell.get("polled"):
        yield "polled"
    if cell.get("nvme"):
        yield "as NVMe commands"


def beside_of(cell: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the further workloads of a plan's cell; none, one or several."""
    others = cell.get("beside", [])
    return [others] if isinstance(others, Mapping) else list(others)


def fills(condition: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the passes of a condition's fill, in order: none, one or several."""
    fill = condition.get("fill", [])
    return [dict(fields) for fields in ([fill] if isinstance(fill, Mapping) else fill)]


def cells_of(fields: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the cells of a plan's loop or soak; none for a trace's streams."""
    return [*fields.get("cells", ()), *([fields["cell"]] if "cell" in fields else [])]


def needs_over_provisioning(steps: Mapping[str, Any]) -> bool:
    """Return whether a fill uses multiples of the raw capacity. `steps` as in `Resolved` or a plan's subject."""
    return any("raw_capacity_multiple" in fill for fill in fills(steps["condition"]))


def pause_s(fields: Mapping[str, Any], runtime_s: float) -> float:
    """Return the idle time in seconds after a loop's cell that took `runtime_s`.

    Return 0 without pause or duty cycle. The duty cycle is runtime divided by the sum of runtime and pause.
    """
    if "duty_cycle" in fields:
        return runtime_s * (1 / float(fields["duty_cycle"]) - 1)
    return float(fields.get("pause_s", 0.0))


def rounds_at_least(until: Mapping[str, Any]) -> int:
    """Return the fewest counted rounds (or runs) under a stop rule."""
    return _rounds(until, "window", FEWEST)


def rounds_at_most(until: Mapping[str, Any]) -> int:
    """Return the most counted rounds (or runs) under a stop rule."""
    return _rounds(until, "max_rounds", MOST)


def _rounds(until: Mapping[str, Any], steady_state_key: str, agreement_rounds: int) -> int:
    fixed: Iterable[str] = (steady_state_key, "rounds", "passes")
    return next((int(until[key]) for key in fixed if key in until), agreement_rounds)
