"""Where on a drive the I/Os of a cell go: one arithmetic for fio, the native engine and the virtual clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lcm

from drivelab.errors import UserError
from drivelab.fio.expressible import refuse_inexpressible, workloads_of
from drivelab.plan.cell import Cell
from drivelab.units import format_size


@dataclass(frozen=True)
class Segments:
    """Equal parts of the active range, spread evenly over the drive."""

    number: int
    length_bytes: int
    distance_bytes: int
    """From the start of one to the start of the next."""


@dataclass(frozen=True)
class Part:
    """One workload of a cell, and its place."""

    cell: Cell
    start_bytes: int
    """Of the first thread."""
    length_bytes: int
    """Of each thread; with segments from the start of the first to the end of the last."""
    segments: Segments | None = None

    @property
    def least_unit_bytes(self) -> int:
        """What offsets of random I/Os are multiples of, counted from the start."""
        return self.cell.alignment_bytes or self.cell.block_size_bytes


def range_of(cell: Cell, capacity_bytes: int) -> tuple[int, int]:
    """Offset and length in bytes of the active range as the cell has it, not rounded to anything.

    Raises UserError if the drive has no room for a range given in bytes.
    """
    start, length = int(cell.range_start * capacity_bytes), _asked_bytes(cell, capacity_bytes)
    if cell.range_bytes is None:
        return start, min(length, capacity_bytes - start)
    if start + cell.range_bytes > capacity_bytes:
        raise UserError(
            f"cell {cell.label}: the active range of {format_size(cell.range_bytes)} is larger than the drive of "
            f"{format_size(capacity_bytes)}; choose a smaller one or a percentage"
        )
    return start, length


def active_range(cell: Cell, capacity_bytes: int, logical_block_bytes: int) -> tuple[int, int]:
    """Offset and length in bytes of each thread's share of the active range, in whole blocks.

    Random threads share the whole range; sequential threads get a stretch each, or they would follow one another
    through the same blocks. An alignment offset shifts the start; what would reach beyond the end of the drive then
    is left out. Raises UserError as `range_of`.
    """
    unit = _unit(cell, logical_block_bytes)
    start = range_of(cell, capacity_bytes)[0] // unit * unit + cell.alignment_offset_bytes
    length = max(min(_asked_bytes(cell, capacity_bytes), capacity_bytes - start), 0) // unit * unit
    if cell.pattern == "sequential":
        length = length // cell.threads // unit * unit
    return start, length


def parts_of(cell: Cell, capacity_bytes: int, logical_block_bytes: int) -> tuple[Part, ...]:
    """The workload of a cell, or the two of them, each with its place.

    All sequential threads have stretches of their own, whichever workload they belong to. Raises UserError for a cell
    that fio cannot be asked for, and for a range that does not hold the largest block of each thread.
    """
    refuse_inexpressible(cell)
    workloads = workloads_of(cell)
    in_turn = [one for one in workloads if one.pattern == "sequential"]
    block = lcm(*(one.block_size_bytes for one in in_turn))
    together = sum(one.threads for one in in_turn)
    parts: list[Part] = []
    stretches = 0
    for one in workloads:
        if one.segments is not None:
            part = _in_segments(one, capacity_bytes, logical_block_bytes)
        elif one.pattern == "sequential":
            whole = replace(one, block_size_bytes=block, threads=together)
            start, length = active_range(whole, capacity_bytes, logical_block_bytes)
            part = Part(one, start + stretches * length, length)
            stretches += one.threads
        else:
            part = Part(one, *active_range(one, capacity_bytes, logical_block_bytes))
        room = part.length_bytes if part.segments is None else part.segments.length_bytes
        if room < one.largest_block_bytes:
            place = "active range does" if part.segments is None else "segments of the active range do"
            raise UserError(
                f"cell {cell.label}: the {place} not hold a block of {format_size(one.largest_block_bytes)} for each "
                "thread; choose a smaller block, fewer threads or a larger range"
            )
        parts.append(part)
    return tuple(parts)


def _asked_bytes(cell: Cell, capacity_bytes: int) -> int:
    return cell.range_bytes if cell.range_bytes is not None else int(cell.range_share * capacity_bytes)


def _unit(cell: Cell, logical_block_bytes: int) -> int:
    aligned = cell.alignment_bytes if cell.pattern == "random" else None
    return max(aligned or cell.block_size_bytes, logical_block_bytes)


def _in_segments(cell: Cell, capacity_bytes: int, logical_block_bytes: int) -> Part:
    """The distance is rounded up: fio starts over at the first segment where the next would lie beyond the drive."""
    number = cell.segments or 1
    unit = _unit(cell, logical_block_bytes)
    start = cell.alignment_offset_bytes
    distance = -(-capacity_bytes // (number * unit)) * unit
    last = start + (number - 1) * distance
    _, total = range_of(cell, capacity_bytes)
    length = max(min(total // number, capacity_bytes - last) // unit * unit, 0)
    return Part(cell, start, last - start + length, Segments(number, length, distance))
