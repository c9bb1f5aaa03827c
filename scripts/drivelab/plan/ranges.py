"""Compute the ranges of a cell's I/Os for fio, native engine and virtual clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lcm

from drivelab.core.errors import UserError
from drivelab.core.units import format_size
from drivelab.plan.cell import Cell
from drivelab.plan.expressible import refuse_inexpressible, workloads_of


@dataclass(frozen=True)
class Segments:
    """Equal parts of the active range, spread evenly over the drive."""

    number: int
    length_bytes: int
    distance_bytes: int
    """Distance between the starts of successive segments."""


@dataclass(frozen=True)
class Part:
    """One workload of a cell, with its range."""

    cell: Cell
    start_bytes: int
    """Start of the first thread's range."""
    length_bytes: int
    """Length of each thread's range; with segments, from the start of the first to the end of the last."""
    segments: Segments | None = None

    @property
    def least_unit_bytes(self) -> int:
        """Return the unit of random offsets, counted from the start."""
        return self.cell.alignment_bytes or self.cell.block_size_bytes


def range_of(cell: Cell, capacity_bytes: int) -> tuple[int, int]:
    """Return offset and length in bytes of the cell's active range, not rounded.

    Raises UserError if a range given in bytes is larger than the drive.
    """
    start, length = int(cell.range_start * capacity_bytes), _requested_bytes(cell, capacity_bytes)
    if cell.range_bytes is None:
        return start, min(length, capacity_bytes - start)
    if start + cell.range_bytes > capacity_bytes:
        raise UserError(
            f"cell {cell.label}: the active range of {format_size(cell.range_bytes)} is larger than the drive of "
            f"{format_size(capacity_bytes)}; choose a smaller one or a percentage"
        )
    return start, length


def active_range(cell: Cell, capacity_bytes: int, logical_block_bytes: int) -> tuple[int, int]:
    """Return offset and length in bytes of the first thread's range, in whole blocks.

    Random threads share the whole range. Sequential threads get one stretch each; otherwise they would follow each
    other through the same blocks. An alignment offset shifts the start; blocks beyond the end of the drive are then
    left out. Raises UserError like `range_of`.
    """
    unit = _unit(cell, logical_block_bytes)
    start = range_of(cell, capacity_bytes)[0] // unit * unit + cell.alignment_offset_bytes
    length = max(min(_requested_bytes(cell, capacity_bytes), capacity_bytes - start), 0) // unit * unit
    if cell.pattern == "sequential":
        length = length // cell.threads // unit * unit
    return start, length


def parts_of(cell: Cell, capacity_bytes: int, logical_block_bytes: int) -> tuple[Part, ...]:
    """Return the cell's workloads, each with its range.

    Every sequential thread of any workload has its own stretch. Raises UserError for a cell that no fio job can
    express, and for a range that does not hold the largest block of each thread.
    """
    refuse_inexpressible(cell)
    workloads = workloads_of(cell)
    sequential = [workload for workload in workloads if workload.pattern == "sequential"]
    block = lcm(*(workload.block_size_bytes for workload in sequential))
    sequential_threads = sum(workload.threads for workload in sequential)
    parts: list[Part] = []
    stretches = 0
    for workload in workloads:
        if workload.segments is not None:
            part = _in_segments(workload, capacity_bytes, logical_block_bytes)
        elif workload.pattern == "sequential":
            whole = replace(workload, block_size_bytes=block, threads=sequential_threads)
            start, length = active_range(whole, capacity_bytes, logical_block_bytes)
            part = Part(workload, start + stretches * length, length)
            stretches += workload.threads
        else:
            part = Part(workload, *active_range(workload, capacity_bytes, logical_block_bytes))
        room = part.length_bytes if part.segments is None else part.segments.length_bytes
        if room < workload.largest_block_bytes:
            place = "active range does" if part.segments is None else "segments of the active range do"
            size = format_size(workload.largest_block_bytes)
            raise UserError(
                f"cell {cell.label}: the {place} not hold a block of {size} for each thread; choose a smaller block, "
                "fewer threads or a larger range"
            )
        parts.append(part)
    return tuple(parts)


def _requested_bytes(cell: Cell, capacity_bytes: int) -> int:
    return cell.range_bytes if cell.range_bytes is not None else int(cell.range_share * capacity_bytes)


def _unit(cell: Cell, logical_block_bytes: int) -> int:
    aligned = cell.alignment_bytes if cell.pattern == "random" else None
    return max(aligned or cell.block_size_bytes, logical_block_bytes)


def _in_segments(cell: Cell, capacity_bytes: int, logical_block_bytes: int) -> Part:
    """Return the range with segments; their distance is rounded up.

    fio returns to the first segment if the next would lie beyond the end of the drive.
    """
    number = cell.segments or 1
    unit = _unit(cell, logical_block_bytes)
    start = cell.alignment_offset_bytes
    distance = -(-capacity_bytes // (number * unit)) * unit
    last = start + (number - 1) * distance
    _, total = range_of(cell, capacity_bytes)
    length = max(min(total // number, capacity_bytes - last) // unit * unit, 0)
    return Part(cell, start, last - start + length, Segments(number, length, distance))
