"""The passes of a fill as cells, the rest period after them, and what tells that the cache is then free."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from drivelab.core.errors import UserError
from drivelab.plan.cell import Cell, fills
from drivelab.plan.plan import Plan

if TYPE_CHECKING:  # these import pyarrow, which is slow
    from drivelab.run.device import Device
    from drivelab.run.progress import Progress

FOLDER = "condition"
"""Folder of the recording for evidence and telemetry of preconditioning."""
_FILL = f"{FOLDER}/fill"
PIECE_S = 1.0
"""Seconds between progress messages during a rest."""
MOST_RESTS = 3
"""Most rests until the drive writes as when it was empty (ours)."""
AS_EMPTY = 0.9
"""Least speed after the rest, as a fraction of that of the empty drive, for its cache to be free (ours)."""
_PROBE_SHARE, _LEAST_PROBE_BYTES = 4096, 1 << 19


@dataclass(frozen=True)
class Pass:
    """One pass of a fill."""

    folder: str
    """Folder of the recording for its evidence."""
    seed: int
    cell: Cell
    words: str
    """Description, for example `fill 2 x, SEQ 128KiB 0/100`."""


def passes(plan: Plan, capacity_bytes: int) -> Iterator[Pass]:
    """Yield the passes of a plan's fill in their order; raises the errors of `fill_cell` at each pass."""
    for number, fill in enumerate(fills(plan.subject["condition"]), 1):
        folder = _FILL if number == 1 else f"{_FILL}-{number}"
        cell = fill_cell(fill, plan, capacity_bytes)
        yield Pass(folder, 1 if number == 1 else plan.seed(folder), cell, _description(fill, cell))


def fill_cell(fill: Mapping[str, Any], plan: Plan, capacity_bytes: int) -> Cell:
    """Return one pass as a cell: one thread, in the active range or the pass's share of it.

    The volume is a multiple of that range, or of the raw capacity: all flash, over-provisioning included. Raises
    UserError if the range is smaller than a block.
    """
    whole = plan.subject["class"]
    share = float(fill.get("range_share", 1.0))
    block = int(fill["block_size_bytes"])
    active_bytes = whole["range_bytes"] if "range_bytes" in whole else int(capacity_bytes * whole["active_range"])
    span_bytes = int(active_bytes * share) // block * block
    if not span_bytes:
        raise UserError(
            f"{plan.measurement}: a fill of {share:.0%} of {active_bytes} bytes is smaller than a block of {block} "
            "bytes; choose a larger range or a smaller block"
        )
    if "raw_capacity_multiple" in fill:
        raw_bytes = capacity_bytes * (1 + plan.subject["drive"]["over_provisioning"])
        volume_bytes = int(raw_bytes * fill["raw_capacity_multiple"])
    else:
        volume_bytes = int(span_bytes * fill["capacity_multiple"])
    return Cell(
        pattern=fill["pattern"],
        read_share=0,
        block_size_bytes=block,
        threads=1,
        queue_depth=fill["queue_depth"],
        volume_bytes=max(volume_bytes // block * block, block),
        range_share=whole["active_range"] * share if "range_bytes" not in whole else 1.0,
        range_bytes=span_bytes if "range_bytes" in whole else None,
        operation=fill.get("operation"),
    )


def _description(fill: Mapping[str, Any], cell: Cell) -> str:
    raw = "raw_capacity_multiple" in fill
    multiple = fill["raw_capacity_multiple" if raw else "capacity_multiple"]
    part = f"{', in' if raw else ' of'} {fill['range_share']:.0%} of the range" if "range_share" in fill else ""
    return f"fill {multiple:g} x{' raw capacity' if raw else ''}{part}, {cell.workload}"


def probes(subject: Mapping[str, Any]) -> bool:
    """Return whether short writes before the fill and after the rest tell that the cache is free.

    They need an empty drive to compare with, so a purge. On a file system they tell nothing: the first write to a part
    of a file also allocates it.
    """
    condition = subject["condition"]
    if "file_system" in subject:
        return False
    return "rest_s" in condition and condition["purge"] != "none" and bool(fills(condition))


def probe_cell(fill: Cell, capacity_bytes: int) -> Cell:
    """Return the short write: as the first pass, a 4096th of the capacity, but at least 512 KiB."""
    volume_bytes = max(capacity_bytes // _PROBE_SHARE, _LEAST_PROBE_BYTES)
    whole = max(volume_bytes // fill.block_size_bytes, 1) * fill.block_size_bytes
    return replace(fill, volume_bytes=min(whole, fill.volume_bytes or whole))


def rest(plan: Plan, device: Device, progress: Progress, rest_s: float) -> None:
    """Flush the drive's cache and leave the drive idle for background work, such as folding the SLC cache.

    Raises CellFailed when the flush fails.
    """
    device.flush()
    if plan.clock == "virtual":
        device.idle(rest_s)
        return
    end_s = time.monotonic() + rest_s
    while (left_s := end_s - time.monotonic()) > 0:
        progress.say(f"cache flushed, idle, {rest_s - left_s:.0f} s of {rest_s:g} s", 0.99)
        device.idle(min(left_s, PIECE_S))
