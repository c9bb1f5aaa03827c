"""Run a composite cell with the native engine, with the same evidence as fio."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from drivelab.drives.target import Target
from drivelab.fio.document import CellFailed
from drivelab.plan.cell import Cell
from drivelab.process import Tick, Timing
from drivelab.recording.writer import write_json
from drivelab.replay import native
from drivelab.replay.composite import completed_rows, composite_schedule
from drivelab.replay.native import RESULTS, EngineOptions
from drivelab.replay.streams import composite_text
from drivelab.virtual.evidence import NATIVE_VERSION, write_rows

FASTEST_IOPS = 1_000_000
"""Space is reserved for the results of this many I/Os a second; no single thread issues more."""
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
        if outcome["state"] != "time is up" or outcome["failed"]:
            raise CellFailed(
                f"the replay engine ended in state '{outcome['state']}'; "
                f"{outcome['failed']} of {outcome['issued']} I/Os failed"
            )
        write_json(directory / "engine.json", {"engine": "native", "buffers": outcome["buffers"]})
        text = composite_text(cell, target.path, NATIVE_VERSION, *place, seed)
        write_rows(directory, completed_rows(schedule, directory / RESULTS), start_us=0.0, threads=1, job=text,
                   version=NATIVE_VERSION, epoch_ms=outcome["start_realtime_ns"] // 10**6)  # fmt: skip
    finally:
        schedule.unlink()
        (directory / RESULTS).unlink(missing_ok=True)
    return timing
