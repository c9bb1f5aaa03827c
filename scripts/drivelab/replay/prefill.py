"""Write what a replay reads: reads of unwritten blocks never reach the flash."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from drivelab.core.errors import CellFailed
from drivelab.replay import native
from drivelab.replay.engine_records import (
    OPERATION_CODES,
    SCHEDULE_RECORD,
    TARGET_SHIFT,
    Records,
    ScheduleWriter,
    open_schedule,
)
from drivelab.replay.survey import footprint_extents
from drivelab.trace.statistics.batch import Ints

PIECE_BYTES = 128 << 10
"""As in the sequential fill of the PTS."""
QUEUE_DEPTH = 32


def prefill_schedule(schedule: Path, output: Path) -> int:
    """Write a schedule that fills what `schedule` reads; return its bytes.

    The writes are in ascending order, target by target.

    Without reads, returns 0 and writes nothing. Raises UserError as drivelab.replay.engine_records.open_schedule does.
    """
    header = open_schedule(schedule).header
    targets = max(header["targets"], 1)
    extents = [footprint_extents(schedule, target) for target in range(targets)]
    if not any(map(len, extents)):
        return 0
    with ScheduleWriter(output, header["target_bytes"], header["block_bytes"], targets) as writer:
        for target, of_target in enumerate(extents):
            writer.write(_fill(of_target, target))
    return sum(int(of_target[:, 1].sum()) for of_target in extents)


def _fill(extents: Ints, target: int) -> Records:
    """Return the writes that fill extents of a target."""
    pieces = -(-extents[:, 1] // PIECE_BYTES)
    first = np.repeat(np.cumsum(pieces) - pieces, pieces)
    within = (np.arange(int(pieces.sum())) - first) * PIECE_BYTES
    records = np.zeros(len(within), SCHEDULE_RECORD)
    records["operation"] = OPERATION_CODES["write"]
    records["depth"] = QUEUE_DEPTH
    records["offset_bytes"] = np.repeat(extents[:, 0], pieces) + within
    records["length_bytes"] = np.minimum(np.repeat(extents[:, 1], pieces) - within, PIECE_BYTES)
    records["flags"] = target << TARGET_SHIFT
    return records


def check_prefill(directory: Path) -> None:
    """Raise CellFailed unless the prefill is complete; delete its results."""
    outcome = native.engine_report(directory)
    if outcome["state"] != "finished" or outcome["failed"]:
        raise CellFailed(
            f"the prefill for the trace's reads ended in state '{outcome['state']}'; {outcome['failed']} writes failed"
        )
    (directory / native.RESULTS).unlink()
