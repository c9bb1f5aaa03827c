"""Write what a replay reads: reads of unwritten blocks never reach the flash."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from drivelab.core.errors import CellFailed
from drivelab.replay import native
from drivelab.replay.engine_records import (
    OPERATION_CODES,
    SCHEDULE_RECORD,
    Records,
    ScheduleWriter,
    open_schedule,
)
from drivelab.replay.native import EngineOptions
from drivelab.replay.survey import footprint_extents
from drivelab.trace.statistics.batch import Ints

PIECE_BYTES = 128 << 10
"""As in the sequential fill of the PTS."""
QUEUE_DEPTH = 32


def prefill_schedule(schedule: Path, output: Path) -> int:
    """Write a schedule that fills what `schedule` reads, in ascending order; return its bytes.

    Without reads, returns 0 and writes nothing. Raises UserError as drivelab.replay.engine_records.open_schedule does.
    """
    header = open_schedule(schedule).header
    extents = footprint_extents(schedule)
    if not len(extents):
        return 0
    with ScheduleWriter(output, header["target_bytes"], header["block_bytes"]) as writer:
        writer.write(_fill(extents))
    return int(extents[:, 1].sum())


def pieces(begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Return begins and ends of the writes that fill the extents [begin, end) of a target, in their order."""
    count = -(-(end - begin) // PIECE_BYTES)
    first = np.repeat(np.cumsum(count) - count, count)
    low = np.repeat(begin, count) + (np.arange(int(count.sum())) - first) * PIECE_BYTES
    return low, np.minimum(low + PIECE_BYTES, np.repeat(end, count))


def _fill(extents: Ints) -> Records:
    """Return the writes that fill extents of the target."""
    begin, end = pieces(extents[:, 0], extents.sum(axis=1))
    records = np.zeros(begin.size, SCHEDULE_RECORD)
    records["operation"] = OPERATION_CODES["write"]
    records["depth"] = QUEUE_DEPTH
    records["offset_bytes"] = begin
    records["length_bytes"] = end - begin
    return records


def prefill_options(wanted: EngineOptions) -> EngineOptions:
    """Return the options for a prefill before a replay with the `wanted` ones."""
    return replace(wanted, depth_limit=QUEUE_DEPTH, go_on=False, seed=None)


def check_prefill(directory: Path) -> None:
    """Raise CellFailed unless the prefill is complete; delete its results."""
    outcome = native.engine_report(directory)
    if outcome["state"] != "finished" or outcome["failed"]:
        raise CellFailed(
            f"the prefill for the trace's reads ended in state '{outcome['state']}'; {outcome['failed']} writes failed"
        )
    (directory / native.RESULTS).unlink()
