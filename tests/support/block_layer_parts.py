"""Data structures of the simulated block layer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from drivelab.trace import records as bits

SECTOR = 512
WRITE_ZEROES = 1 << (16 + 22)
SEQUENCED = bits.FLUSH | bits.FUA
WORDS = {
    "read": bits.READ,
    "write": bits.WRITE,
    "discard": bits.WRITE | bits.DISCARD,
    "write-zeroes": bits.WRITE | WRITE_ZEROES,
}


@dataclass(frozen=True)
class Setup:
    """Properties and behaviour of the machine."""

    version: int = 7
    cpus: int = 2
    processes: int = 3
    bios: int = 40
    has_queue: bool = True
    """False for a device such as zram or dm, which completes bios without requests."""
    device_fua: bool = False
    depth: int = 8
    split_sectors: int = 32
    merges: bool = True
    flushes: bool = True
    requeues: bool = True
    refusals: bool = False
    """The driver refuses requests before it starts them: requeues without a dispatch."""
    discard_ranges: bool = False
    """The drive accepts discards of several ranges: the kernel merges them in a plug, without an event."""
    partial: bool = True
    errors: bool = True
    cgroups: bool = True
    """Some events have a cgroup id, as with `blkcgroup` on; blkparse 1.2 does not count these."""
    repeats: bool = False
    """Concurrent requests for the same sectors; without merges and overtaking, their order identifies them."""


@dataclass(eq=False)
class Bio:
    truth: dict[str, Any]
    word: int
    sector: int
    sectors: int
    left: int
    sequences: int = 0
    """Unfinished flush sequences of its parts."""


@dataclass(eq=False)
class Part:
    """A bio, or a part of a split bio."""

    bio: Bio
    sector: int
    sectors: int
    begun: bool = False
    """Whether it is partly completed in the present dispatch."""


@dataclass(eq=False)
class Request:
    word: int
    parts: list[Part]
    mergeable: bool = True
    steps: list[str] = field(default_factory=list)
    """Remaining steps of a flush sequence: `flush`, `data`."""
    sequenced: bool = False

    @property
    def sector(self) -> int:
        return self.parts[0].sector if self.parts else 0

    @property
    def sectors(self) -> int:
        return sum(part.sectors for part in self.parts)

    @property
    def end(self) -> int:
        return self.sector + self.sectors


def process_name(pid: int) -> str:
    return f"program {pid}"


def row_of_truth(word: int, sector: int, sectors: int, queue_ns: int, pid: int, cpu: int) -> dict[str, Any]:
    """Return the row of a newly queued bio, with the columns of a trace."""
    operation = next(name for name in ("discard", "write-zeroes", "write", "read") if word & WORDS[name] == WORDS[name])
    return {
        "queue_ns": queue_ns, "dispatch_ns": None, "complete_ns": None, "operation": operation if sectors else "flush",
        "sync": bool(word & bits.SYNC), "meta": bool(word & bits.META), "fua": bool(word & bits.FUA),
        "readahead": bool(word & bits.READAHEAD), "preflush": bool(word & bits.FLUSH and sectors),
        "offset_bytes": SECTOR * sector, "length_bytes": SECTOR * sectors, "process": process_name(pid), "pid": pid,
        "cpu": cpu, "error": 0, "dispatch_id": None, "pieces": 0, "requeues": 0,
    }  # fmt: skip
