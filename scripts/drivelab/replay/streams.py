"""The streams of a composite cell: where on the drive each of them has its place, and the cell in words of a job."""

from __future__ import annotations

from dataclasses import dataclass, replace

from drivelab.errors import UserError
from drivelab.fio.ranges import active_range
from drivelab.plan.cell import Cell
from drivelab.units import format_size


@dataclass(frozen=True)
class Stream:
    """I/Os of one kind and size; offsets are `start_bytes` plus a multiple of the block."""

    reads: bool
    random: bool
    """Else each continues at the end of the one before, and at the start again after the last."""
    block_bytes: int
    share: float
    """Of the I/Os of the cell; those of all streams add up to 1."""
    start_bytes: int
    blocks: int
    """That the stream goes to."""


def streams_of(cell: Cell, capacity_bytes: int, logical_block_bytes: int) -> tuple[Stream, ...]:
    """The streams of a composite in the cell's order.

    Random ones share the whole active range; sequential ones get an equal stretch of it each, or they would follow
    one another through the same blocks. Raises UserError if that is too small for a block of each.
    """
    if not cell.streams:
        raise ValueError(f"cell {cell.label} has no streams")
    whole = replace(cell, block_size_bytes=cell.largest_block_bytes)
    start, length = active_range(whole, capacity_bytes, logical_block_bytes)
    unit = max(whole.block_size_bytes, logical_block_bytes)
    sequential = [one["pattern"] == "sequential" for one in cell.streams]
    stretch = length // max(sum(sequential), 1) // unit * unit
    if (stretch if any(sequential) else length) < unit:
        raise UserError(
            f"cell {cell.label}: the active range does not hold a block of {format_size(cell.largest_block_bytes)} for "
            "each sequential stream; choose fewer streams, smaller ones or a larger range"
        )
    shares = sum(float(one["share"]) for one in cell.streams)
    found: list[Stream] = []
    begin = start
    for one, in_turn in zip(cell.streams, sequential, strict=True):
        block = int(one["block_size_bytes"])
        found.append(
            Stream(
                reads=one["operation"] == "read",
                random=not in_turn,
                block_bytes=block,
                share=float(one["share"]) / shares,
                start_bytes=begin if in_turn else start,
                blocks=(stretch if in_turn else length) // block,
            )
        )
        begin += stretch * in_turn
    return tuple(found)


def composite_text(
    cell: Cell, device: str, engine: str, capacity_bytes: int, logical_block_bytes: int, seed: int
) -> str:
    """What `drivelab.fio.job.job_text` is for other cells; fio has no words for streams, so it cannot run this."""
    options: dict[str, str | int] = {
        "filename": device,
        "direct": 1,
        "ioengine": engine,
        "numjobs": cell.threads,
        "iodepth": cell.queue_depth,
        "randseed": seed,
    }
    for number, one in enumerate(streams_of(cell, capacity_bytes, logical_block_bytes), 1):
        kind = ("rand" if one.random else "") + ("read" if one.reads else "write")
        options[f"stream{number}"] = (
            f"{kind} bs={one.block_bytes} share={one.share:.6g} offset={one.start_bytes} "
            f"size={one.blocks * one.block_bytes}"
        )
    if cell.runtime_s is not None:
        options["runtime"] = f"{round(cell.runtime_s * 1000)}ms"
    if cell.volume_bytes is not None:
        options["io_size"] = cell.volume_bytes
    return "[cell]\n" + "".join(f"{key}={value}\n" for key, value in options.items())
