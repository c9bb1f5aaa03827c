"""A composite of streams as a schedule for the native engine, and what the engine did as completions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from drivelab.errors import UserError
from drivelab.plan.cell import Cell
from drivelab.replay.records import (
    COMPLETED,
    LONGEST_TRANSFER_BYTES,
    MOST_IN_FLIGHT,
    OPERATION_CODES,
    RESULT_RECORD,
    SCHEDULE_RECORD,
    Records,
    ScheduleWriter,
    open_results,
    open_schedule,
)
from drivelab.replay.streams import Stream, streams_of
from drivelab.units import format_size

_BATCH = 1 << 17


def composite_schedule(
    cell: Cell, capacity_bytes: int, logical_block_bytes: int, path: Path, seed: int, count: int
) -> None:
    """Write a schedule of `count` requests of the cell's streams, all due at once, at its threads times queue depth.

    Each request belongs to a stream drawn by the shares, whatever the one before. The same arguments give the same
    bytes. Raises UserError if the streams do not fit the drive or the engine.
    """
    depth = cell.threads * cell.queue_depth
    if depth > MOST_IN_FLIGHT:
        raise UserError(
            f"cell {cell.label}: {depth} I/Os in flight are more than the engine's {MOST_IN_FLIGHT}; "
            "choose fewer threads or a smaller queue depth"
        )
    streams = streams_of(cell, capacity_bytes, logical_block_bytes)
    for one in streams:
        if one.block_bytes % logical_block_bytes or one.block_bytes > LONGEST_TRANSFER_BYTES:
            raise UserError(
                f"cell {cell.label}: a stream of {format_size(one.block_bytes)} does not suit a drive with logical "
                f"blocks of {format_size(logical_block_bytes)} and transfers of up to "
                f"{format_size(LONGEST_TRANSFER_BYTES)}; choose a multiple of the one up to the other"
            )
    draw = _Draw(streams, seed)
    with ScheduleWriter(path, capacity_bytes // logical_block_bytes * logical_block_bytes, logical_block_bytes) as file:
        for first in range(0, count, _BATCH):
            records = draw.requests(min(_BATCH, count - first))
            records["depth"] = depth
            file.write(records)


class _Draw:
    """Requests drawn from streams, on and on."""

    def __init__(self, streams: tuple[Stream, ...], seed: int) -> None:
        self._streams = streams
        self._rng = np.random.default_rng(seed)
        self._bounds = np.cumsum([one.share for one in streams])[:-1]
        self._operation = np.array([OPERATION_CODES["read" if one.reads else "write"] for one in streams], np.uint8)
        self._block = np.array([one.block_bytes for one in streams], np.uint64)
        self._following = [0] * len(streams)
        """Of the sequential streams, the block that is next."""

    def requests(self, count: int) -> Records:
        """The next requests: records of a schedule without a depth."""
        chosen = np.searchsorted(self._bounds, self._rng.random(count), side="right")
        records = np.zeros(count, SCHEDULE_RECORD)
        records["operation"] = self._operation[chosen]
        records["length_bytes"] = self._block[chosen]
        for number, one in enumerate(self._streams):
            mine = np.flatnonzero(chosen == number)
            records["offset_bytes"][mine] = one.start_bytes + one.block_bytes * self._indices(number, len(mine))
        return records

    def _indices(self, number: int, count: int) -> npt.NDArray[np.int64]:
        one = self._streams[number]
        if one.random:
            return self._rng.integers(0, one.blocks, count)
        first = self._following[number]
        self._following[number] = (first + count) % one.blocks
        return (first + np.arange(count)) % one.blocks


def completed_rows(schedule: Path, results: Path) -> Iterator[npt.NDArray[np.float64]]:
    """Reads and writes that an engine completed without an error, in the order of completion, with the bytes moved.

    Arrays as drivelab.virtual.evidence.write_rows takes them, times in us after the start. For schedules without
    dependencies, as `composite_schedule` makes them: their requests are issued in their order, so that what is still
    to be issued cannot have completed before. Raises UserError as the two files' readers do.
    """
    plan, found = open_schedule(schedule).records, open_results(results).records
    issued = int(np.count_nonzero(found["state"]))
    kept = np.zeros(0, RESULT_RECORD), np.zeros(0, SCHEDULE_RECORD)
    for first in range(0, issued, _BATCH):
        end = min(first + _BATCH, issued)
        batch = found[first:end], plan[np.arange(first, end) % len(plan)]
        done, asked = (np.concatenate(pair) for pair in zip(kept, batch, strict=True))
        counts = (done["state"] == COMPLETED) & (done["result"] >= 0) & (asked["operation"] <= OPERATION_CODES["write"])
        done, asked = done[counts], asked[counts]
        order = np.argsort(done["complete_ns"], kind="stable")
        done, asked = done[order], asked[order]
        sure = len(done)
        if end < issued:
            sure = int(np.searchsorted(done["complete_ns"], found["issue_ns"][end]))
        if sure:
            reads = asked["operation"] == OPERATION_CODES["read"]
            columns = (done["complete_ns"] / 1000, done["issue_ns"] / 1000, reads, done["result"])
            yield np.stack([column[:sure] for column in columns], axis=1).astype(np.float64)
        kept = done[sure:], asked[sure:]
