"""The reads and the writes of an open-loop load: placement on the drive, and requests drawn from them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from drivelab.core.errors import UserError
from drivelab.core.units import format_size
from drivelab.plan.cell import Cell
from drivelab.plan.ranges import active_range
from drivelab.replay.engine_records import OPERATION_CODES, SCHEDULE_RECORD, Records


@dataclass(frozen=True)
class Stream:
    """Requests of one operation; offsets are `start_bytes` plus a multiple of the block."""

    operation: str
    share: float
    """Share of the cell's I/Os; the shares of both streams add up to 1."""
    start_bytes: int
    blocks: int
    """Number of blocks that the stream covers."""


def streams_of(cell: Cell, capacity_bytes: int, logical_block_bytes: int) -> tuple[Stream, ...]:
    """Return the reads and the writes of a cell, without one that has no I/Os.

    Random ones share the whole active range. Sequential ones get an equal stretch of it each, so that they do not
    access the same blocks. Raises UserError if a stretch is smaller than a block.
    """
    start, length = active_range(replace(cell, threads=1), capacity_bytes, logical_block_bytes)
    block = cell.block_size_bytes
    shares = {"read": cell.read_share / 100, "write": 1 - cell.read_share / 100}
    shares = {operation: share for operation, share in shares.items() if share > 0}
    sequential = cell.pattern == "sequential"
    unit = max(block, logical_block_bytes)
    stretch = length // len(shares) // unit * unit if sequential else length
    if stretch < unit:
        raise UserError(
            f"cell {cell.label}: the active range does not hold a block of {format_size(block)} for reads and for "
            "writes; choose a smaller one or a larger range"
        )
    return tuple(
        Stream(operation, share, start + number * stretch * sequential, stretch // block)
        for number, (operation, share) in enumerate(shares.items())
    )


class Draw:
    """Endless requests drawn from the streams of a cell."""

    def __init__(self, cell: Cell, streams: tuple[Stream, ...], seed: int) -> None:
        self._streams, self._block_bytes = streams, cell.block_size_bytes
        self._random = cell.pattern == "random"
        self._rng = np.random.default_rng(seed)
        self._bounds = np.cumsum([stream.share for stream in streams])[:-1]
        self._operation = np.array([OPERATION_CODES[stream.operation] for stream in streams], "u1")
        self._following = [0] * len(streams)
        """Next block of each sequential stream."""

    def requests(self, count: int) -> Records:
        """Return the next requests as schedule records without a depth."""
        chosen = np.searchsorted(self._bounds, self._rng.random(count), side="right")
        records = np.zeros(count, SCHEDULE_RECORD)
        records["operation"] = self._operation[chosen]
        records["length_bytes"] = self._block_bytes
        for number, stream in enumerate(self._streams):
            rows = np.flatnonzero(chosen == number)
            records["offset_bytes"][rows] = stream.start_bytes + self._block_bytes * self._indices(number, len(rows))
        return records

    def _indices(self, number: int, count: int) -> npt.NDArray[np.int64]:
        stream = self._streams[number]
        if self._random:
            return self._rng.integers(0, stream.blocks, count)
        first = self._following[number]
        self._following[number] = (first + count) % stream.blocks
        return (first + np.arange(count)) % stream.blocks
