"""Write a composite's schedule for the native engine; read its completions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from drivelab.core.errors import CellFailed, UserError
from drivelab.core.programs import Tick, Timing
from drivelab.core.units import format_size
from drivelab.drives.target import Target
from drivelab.fio.cell_evidence import NATIVE_VERSION, write_rows
from drivelab.plan.cell import Cell
from drivelab.plan.replay_choice import MOST_IN_FLIGHT
from drivelab.recording.writer import write_json
from drivelab.replay import native
from drivelab.replay.engine_records import (
    COMPLETED,
    LONGEST_TRANSFER_BYTES,
    OPERATION_CODES,
    RESULT_RECORD,
    SCHEDULE_RECORD,
    Records,
    ScheduleWriter,
    open_results,
    open_schedule,
)
from drivelab.replay.native import RESULTS, EngineOptions
from drivelab.replay.streams import Stream, composite_text, streams_of

_BATCH = 1 << 17


def composite_schedule(
    cell: Cell, capacity_bytes: int, logical_block_bytes: int, path: Path, seed: int, count: int
) -> None:
    """Write a schedule of `count` requests from the cell's streams.

    All requests are due at once; the depth is threads times queue depth. Each request's stream is drawn independently
    by the shares. The same arguments give the same bytes. Raises UserError if the streams do not fit the drive or the
    engine.
    """
    depth = cell.threads * cell.queue_depth
    if depth > MOST_IN_FLIGHT:
        raise UserError(
            f"cell {cell.label}: {depth} I/Os in flight exceed the engine's limit of {MOST_IN_FLIGHT}; "
            "choose fewer threads or a smaller queue depth"
        )
    streams = streams_of(cell, capacity_bytes, logical_block_bytes)
    for stream in streams:
        if stream.block_bytes % logical_block_bytes or stream.block_bytes > LONGEST_TRANSFER_BYTES:
            raise UserError(
                f"cell {cell.label}: the block size {format_size(stream.block_bytes)} of a stream does not fit; choose "
                f"a multiple of the drive's logical block of {format_size(logical_block_bytes)}, at most "
                f"{format_size(LONGEST_TRANSFER_BYTES)}"
            )
    draw = Draw(streams, seed)
    with ScheduleWriter(path, capacity_bytes // logical_block_bytes * logical_block_bytes, logical_block_bytes) as file:
        for first in range(0, count, _BATCH):
            records = draw.requests(min(_BATCH, count - first))
            records["depth"] = depth
            file.write(records)


class Draw:
    """Endless requests drawn from streams."""

    def __init__(self, streams: tuple[Stream, ...], seed: int) -> None:
        self._streams = streams
        self._rng = np.random.default_rng(seed)
        self._bounds = np.cumsum([stream.share for stream in streams])[:-1]
        self._operation = np.array([OPERATION_CODES["read" if stream.reads else "write"] for stream in streams], "u1")
        self._block = np.array([stream.block_bytes for stream in streams], np.uint64)
        self._following = [0] * len(streams)
        """Next block of each sequential stream."""

    def requests(self, count: int) -> Records:
        """Return the next requests as schedule records without a depth."""
        chosen = np.searchsorted(self._bounds, self._rng.random(count), side="right")
        records = np.zeros(count, SCHEDULE_RECORD)
        records["operation"] = self._operation[chosen]
        records["length_bytes"] = self._block[chosen]
        for number, stream in enumerate(self._streams):
            rows = np.flatnonzero(chosen == number)
            records["offset_bytes"][rows] = stream.start_bytes + stream.block_bytes * self._indices(number, len(rows))
        return records

    def _indices(self, number: int, count: int) -> npt.NDArray[np.int64]:
        stream = self._streams[number]
        if stream.random:
            return self._rng.integers(0, stream.blocks, count)
        first = self._following[number]
        self._following[number] = (first + count) % stream.blocks
        return (first + np.arange(count)) % stream.blocks


def completed_rows(schedule: Path, results: Path) -> Iterator[npt.NDArray[np.float64]]:
    """Yield the reads and writes completed without error, in completion order.

    Arrays are as drivelab.fio.cell_evidence.write_rows takes them, times in us after the start. The schedule must have
    no dependencies, as `composite_schedule` writes it: the engine issues it in order, so no later request can complete
    before its issue. Raises UserError as open_schedule and open_results do.
    """
    plan, outcomes = open_schedule(schedule).records, open_results(results).records
    issued = int(np.count_nonzero(outcomes["state"]))
    kept = np.zeros(0, RESULT_RECORD), np.zeros(0, SCHEDULE_RECORD)
    for first in range(0, issued, _BATCH):
        end = min(first + _BATCH, issued)
        batch = outcomes[first:end], plan[np.arange(first, end) % len(plan)]
        done, requests = (np.concatenate(pair) for pair in zip(kept, batch, strict=True))
        ok = (done["state"] == COMPLETED) & (done["result"] >= 0) & (requests["operation"] <= OPERATION_CODES["write"])
        done, requests = done[ok], requests[ok]
        order = np.argsort(done["complete_ns"], kind="stable")
        done, requests = done[order], requests[order]
        settled = len(done)
        if end < issued:
            settled = int(np.searchsorted(done["complete_ns"], outcomes["issue_ns"][end]))
        if settled:
            reads = requests["operation"] == OPERATION_CODES["read"]
            columns = (done["complete_ns"] / 1000, done["issue_ns"] / 1000, reads, done["result"])
            yield np.stack([column[:settled] for column in columns], axis=1).astype(np.float64)
        kept = done[settled:], requests[settled:]


FASTEST_IOPS = 1_000_000
"""Space is reserved for the results of this many I/Os a second."""
_DRAWN = 1 << 21
"""I/Os drawn before they repeat: half a minute of a fast drive, 80 MiB."""


def run_composite(
    target: Target,
    cell: Cell,
    directory: Path,
    seed: int,
    on_tick: Tick,
    on_hang: Callable[[], None],
) -> Timing:
    """Run the streams of a cell for its runtime, issued by one thread.

    Threads times queue depth I/Os are in flight. `engine.json` beside the evidence says whether the request buffers
    were registered or plain. Raises CellFailed when the engine ends early or an I/O fails.
    """
    assert cell.runtime_s is not None
    most = int(FASTEST_IOPS * cell.runtime_s)
    schedule = directory / "composite.schedule"
    place = (target.capacity_bytes, target.logical_block_bytes)
    composite_schedule(cell, *place, schedule, seed, min(_DRAWN, most))
    options = EngineOptions(
        depth_limit=cell.threads * cell.queue_depth, runtime_s=cell.runtime_s, requests=most, seed=seed
    )
    try:
        timing = native.run_engine(
            target.path, target.identity, schedule, directory, options, on_tick=on_tick, on_hang=on_hang
        )
        outcome = native.engine_report(directory)
        if outcome["state"] == "finished":
            raise CellFailed(
                f"the drive took more I/Os than drivelab reserves space for, {FASTEST_IOPS:,} a second; give the "
                "load a smaller queue depth"
            )
        if outcome["state"] != "time is up" or outcome["failed"]:
            raise CellFailed(
                f"the replay engine ended in state '{outcome['state']}'; "
                f"{outcome['failed']} of {outcome['issued']} I/Os failed"
            )
        kept = {"buffers": outcome["buffers"]}
        write_json(directory / "engine.json", {"engine": "native", **kept})
        text = composite_text(cell, target.path, NATIVE_VERSION, *place, seed)
        write_rows(directory, completed_rows(schedule, directory / RESULTS), start_us=0.0, threads=(1,), job=text,
                   version=NATIVE_VERSION, epoch_ms=outcome["start_realtime_ns"] // 10**6)  # fmt: skip
    finally:
        schedule.unlink()
        (directory / RESULTS).unlink(missing_ok=True)
    return timing
