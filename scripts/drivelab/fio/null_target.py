"""Null targets: they replace an infinitely fast drive, and each gives other bounds of the host's ceiling.

- A null_blk device goes through the whole block layer and completes at once, so it gives the ceiling itself. drivelab
  only reads from it. A write costs the host at least as much as a read, so for writes it is an upper bound. Threads
  that share a queue of the device wait for each other. A drive with more queues may be faster, so the result is then a
  lower bound only.
- fio's null engine issues nothing, so fio alone limits it: an upper bound, also for writes, whose data fio makes.
- A zram device that was never written to answers reads with zeros. It spends CPU time on that, and io_uring hands its
  requests to worker threads, so the host gives at least as much. drivelab makes one and removes it; this needs root.

Sources: Documentation/block/null_blk.rst, Documentation/admin-guide/blockdev/zram.rst, fio's engines/null.c.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from drivelab.core.units import counted
from drivelab.criteria.host_limit import AT_LEAST, AT_MOST
from drivelab.drives import guard, sysfs
from drivelab.drives.sysfs import read_text
from drivelab.fio.own_zram import own_zram
from drivelab.plan.cell import TRIM, Cell
from drivelab.plan.plan import canonical

CEILINGS = "host_ceilings.json"
"""In a recording: the ceilings of its loads, with targets and jobs."""
ENGINES = ("io_uring", "libaio")
"""Engines whose ceilings are measured."""
RUN_S = 0.5
"""Longest run on a target, of TRIES: noise only makes a run slower, so the best counts."""
TRIES = 2
NO_DEVICE = "there is no null_blk device"
"""Why there is no target of the kind that gives the ceiling itself."""
_NULL_ENGINE = "null"
_AT_ONCE = ("0", "1")
"""Values of null_blk's `irqmode` that complete without a timer."""
_BYTES = 1 << 30


@dataclass(frozen=True)
class NullTarget:
    """A target, and what a result on it means."""

    name: str
    path: str
    meaning: str
    logical_block_bytes: int
    capacity_bytes: int = _BYTES
    engine: str | None = None
    """fio's engine instead of the cell's."""
    queues: int = 1
    """Queues that requests are submitted to, if it is a null_blk device."""

    @property
    def readonly(self) -> bool:
        """Return whether fio has to refuse writes: a device is only read."""
        return self.engine is None

    def bounds(self, load: Cell) -> tuple[str, ...]:
        """Return which bounds of a load's ceiling a result on this target gives; none if it does not suit the load."""
        sizes = (load.block_size_bytes, *(int(part["block_size_bytes"]) for part in load.block_sizes or ()))
        if any(size % self.logical_block_bytes for size in sizes) or load.largest_block_bytes > self.capacity_bytes:
            return ()
        if self.engine is not None:
            return (AT_MOST,)
        reads = load.direction == "read"
        if self.name.startswith("zram"):
            return (AT_LEAST,) if reads else ()
        shared = load.threads > 1 and self.queues < (os.cpu_count() or 1)
        return ((AT_LEAST,) if reads else ()) + (() if shared else (AT_MOST,))

    def load_for(self, load: Cell) -> Cell:
        """Return the load that runs on this target: a device is only read."""
        return replace(load, read_share=100, entropy=None) if self.readonly else load


def load_of(cell: Cell) -> Cell | None:
    """Return what the host's ceiling for a cell depends on, as a short cell; None if it cannot be measured.

    Range, alignment, distribution of places and rate are left out. Trims, synchronous writes, several workloads at the
    same time and composites have no ceiling here.
    """
    if cell.streams is not None or cell.beside is not None or cell.operation == TRIM or cell.synchronous:
        return None
    return Cell(
        pattern=cell.pattern,
        read_share=cell.read_share,
        block_size_bytes=cell.block_size_bytes,
        block_size_max_bytes=cell.block_size_max_bytes,
        block_sizes=cell.block_sizes,
        threads=cell.threads,
        queue_depth=cell.queue_depth,
        entropy=cell.entropy,
        runtime_s=min(RUN_S, cell.runtime_s or RUN_S),
    )


def key_of(load: Cell) -> str:
    """Return the text that identifies a load in files."""
    return canonical(load.to_mapping())


@contextmanager
def null_targets(besides: Sequence[str] = ()) -> Iterator[tuple[list[NullTarget], list[str]]]:
    """Yield the targets of this host, the most telling first, and why others are missing.

    `besides` are kernel names of devices under test. A zram device exists only within the context.
    """
    of_fio = NullTarget(
        "fio's null engine", _NULL_ENGINE, "fio alone, without the kernel: the host gives at most this", 512,
        engine=_NULL_ENGINE,
    )  # fmt: skip
    device, missing = null_block_device(besides)
    if device is not None:
        yield [device, of_fio], missing
        return
    with own_zram(_BYTES) as (name, reason):
        zram = [] if name is None else [_zram(name)]
        yield [*zram, of_fio], [*missing, *([reason] if reason else [])]


def _zram(name: str) -> NullTarget:
    meaning = "reads of a new zram device, which costs CPU time itself: the host gives at least this"
    return NullTarget(name, f"/dev/{name}", meaning, sysfs.logical_block_bytes(name))


def null_block_device(besides: Sequence[str], sys_root: Path = Path("/sys")) -> tuple[NullTarget | None, list[str]]:
    """Return a null_blk device that nothing uses and that completes at once; else why there is none."""
    reasons: list[str] = []
    for folder in sorted((sys_root / "block").glob("nullb*")):
        reason = _unsuitable(folder.name, besides, sys_root)
        if reason is None:
            queues = int(_parameter(folder.name, "submit_queues", sys_root) or 1)
            meaning = f"reads of a null_blk device with {counted(queues, 'queue')}: the whole path through the kernel"
            block_bytes = sysfs.logical_block_bytes(folder.name, sys_root)
            size_bytes = min(sysfs.capacity_bytes(folder.name, sys_root), _BYTES)
            path = f"/dev/{folder.name}"
            return NullTarget(folder.name, path, meaning, block_bytes, size_bytes, queues=queues), reasons
        reasons.append(f"/dev/{folder.name}: {reason}")
    return None, reasons or [NO_DEVICE]


def _unsuitable(name: str, besides: Sequence[str], sys_root: Path) -> str | None:
    if name in besides:
        return "it is measured itself"
    if (read_text(sys_root / "block" / name / "queue/zoned") or "none") != "none":
        return "it has zones"
    mode = _parameter(name, "irqmode", sys_root)
    if mode not in _AT_ONCE:
        return "a timer delays its completions (irqmode)" if mode is not None else "its irqmode is not known"
    return guard.holder(f"/dev/{name}", name)


def _parameter(name: str, parameter: str, sys_root: Path) -> str | None:
    """Return a parameter of a null_blk device that configfs made, else of the module; None if it is not known."""
    files = sys_root / "kernel/config/nullb" / name / parameter, sys_root / "module/null_blk/parameters" / parameter
    return next((text for file in files if (text := read_text(file)) is not None), None)


def facts_of(target: NullTarget, load: Cell) -> dict[str, Any]:
    """Return what a result on a target means, for the recording."""
    return {"target": target.name, "meaning": target.meaning, "bounds": list(target.bounds(load)),
            "reads_only": target.readonly}  # fmt: skip
