"""The streams of a composite cell: placement on the drive, and job text."""

from __future__ import annotations

from dataclasses import dataclass, replace

from drivelab.core.errors import UserError
from drivelab.core.units import format_size
from drivelab.plan.cell import Cell
from drivelab.plan.ranges import active_range


@dataclass(frozen=True)
class Stream:
    """I/Os of one kind and size.

    Offsets are `start_bytes` plus a multiple of the block.
    """

    reads: bool
    random: bool
    """Otherwise each I/O starts at the previous end, and wraps around after the last block."""
    block_bytes: int
    share: float
    """Share of the cell's I/Os; the shares of all streams add up to 1."""
    start_bytes: int
    blocks: int
    """Number of blocks that the stream covers."""


def streams_of(cell: Cell, capacity_bytes: int, logical_block_bytes: int) -> tuple[Stream, ...]:
    """Return the streams of a composite in the cell's order.

    Random streams share the whole active range. Each sequential stream gets an equal stretch of it, so that they do
    not access the same blocks. Raises UserError if a stretch is smaller than a block.
    """
    if not cell.streams:
        raise ValueError(f"cell {cell.label} has no streams")
    whole = replace(cell, block_size_bytes=cell.largest_block_bytes)
    start, length = active_range(whole, capacity_bytes, logical_block_bytes)
    unit = max(whole.block_size_bytes, logical_block_bytes)
    sequential = [stream["pattern"] == "sequential" for stream in cell.streams]
    stretch = length // max(sum(sequential), 1) // unit * unit
    if (stretch if any(sequential) else length) < unit:
        raise UserError(
            f"cell {cell.label}: the active range does not hold a block of {format_size(cell.largest_block_bytes)} for "
            "each sequential stream; choose fewer streams, smaller ones or a larger range"
        )
    shares = sum(float(stream["share"]) for stream in cell.streams)
    streams: list[Stream] = []
    begin = start
    for stream, is_sequential in zip(cell.streams, sequential, strict=True):
        block = int(stream["block_size_bytes"])
        streams.append(
            Stream(
                reads=stream["operation"] == "read",
                random=not is_sequential,
                block_bytes=block,
                share=float(stream["share"]) / shares,
                start_bytes=begin if is_sequential else start,
                blocks=(stretch if is_sequential else length) // block,
            )
        )
        begin += stretch * is_sequential
    return tuple(streams)


def composite_text(
    cell: Cell, device: str, engine: str, capacity_bytes: int, logical_block_bytes: int, seed: int
) -> str:
    """Return a composite's job text for the record; fio cannot run streams."""
    options: dict[str, str | int] = {
        "filename": device,
        "direct": 1,
        "ioengine": engine,
        "numjobs": cell.threads,
        "iodepth": cell.queue_depth,
        "randseed": seed,
    }
    for number, stream in enumerate(streams_of(cell, capacity_bytes, logical_block_bytes), 1):
        kind = ("rand" if stream.random else "") + ("read" if stream.reads else "write")
        options[f"stream{number}"] = (
            f"{kind} bs={stream.block_bytes} share={stream.share:.6g} offset={stream.start_bytes} "
            f"size={stream.blocks * stream.block_bytes}"
        )
    if cell.runtime_s is not None:
        options["runtime"] = f"{round(cell.runtime_s * 1000)}ms"
    if cell.volume_bytes is not None:
        options["io_size"] = cell.volume_bytes
    return "[cell]\n" + "".join(f"{key}={value}\n" for key, value in options.items())
