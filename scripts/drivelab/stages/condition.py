"""Purge and precondition: each stage ensures the state that it starts from and seals the one that it leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from drivelab.drives.seal import Seal, Verdict, judge
from drivelab.errors import UserError
from drivelab.fio.result import CellFailed, read_result
from drivelab.plan.blocks import refuse_small_cells
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.recording.writer import Recording, now_iso, write_json
from drivelab.stages.device import Device, open_device
from drivelab.stages.progress import Progress

NOTHING_TO_DO = "nothing"
"""Stage named by the seal file of a measurement that is recorded already."""


def purge(plan: Plan, seal_out: Path) -> None:
    """Bring the drive back to as if never written, and seal that."""
    recording = Recording(plan)
    if recording.complete:
        write_json(seal_out, {"stage": NOTHING_TO_DO})
        return
    with open_device(plan) as device:
        refuse_small_cells(plan, device.logical_block_bytes)
        recording.set_aside("the drive was purged for a new start")
        recording.open()
        write_json(seal_out, _purge(plan, device, recording).to_mapping())


def precondition(plan: Plan, seal_in: Path, seal_out: Path) -> None:
    """Fill the drive as the protocol says, after making sure that it is purged, and seal that."""
    recording = Recording(plan)
    if recording.complete:
        write_json(seal_out, {"stage": NOTHING_TO_DO})
        return
    with open_device(plan) as device:
        recording.open()
        if not check_seal(plan, device, recording, seal_in, "purge"):
            _purge(plan, device, recording)
        write_json(seal_out, _precondition(plan, device, recording).to_mapping())


def prepare(plan: Plan, device: Device, recording: Recording) -> None:
    """Purge and precondition in one go: what a measurement does that finds the drive in another state."""
    _purge(plan, device, recording)
    _precondition(plan, device, recording)


def check_seal(plan: Plan, device: Device, recording: Recording, path: Path, stage: str) -> bool:
    """Whether the seal in a file vouches for the drive as it is now; the verdict goes into the journal."""
    try:
        seal = Seal.from_mapping(json.loads(path.read_text()))
    except (OSError, ValueError, TypeError, KeyError):
        verdict = Verdict(False, "there is no readable seal")
    else:
        verdict = judge(seal, stage, device.serial, plan.digest, device.wear())
    recording.append("verdict", stage=stage, intact=verdict.intact, reason=verdict.reason)
    if not verdict.intact:
        print(
            f"drive '{plan.drive}': seal after {stage} is broken: {verdict.reason}; purging and preconditioning again"
        )
    return verdict.intact


def _seal(plan: Plan, device: Device, recording: Recording, stage: str) -> Seal:
    seal = Seal(stage, device.serial, plan.digest, device.wear(), now_iso())
    recording.append("seal", seal=seal.to_mapping())
    return seal


def _purge(plan: Plan, device: Device, recording: Recording) -> Seal:
    progress = Progress(plan, "purge")
    condition = plan.subject["condition"]
    if condition["purge"] == "none":
        recording.append("purge", method="none", verified="the protocol wants none")
    else:
        recording.append("purge", **device.purge(condition["purge"], progress.say))
        if settle_s := condition.get("settle_s"):
            progress.say(f"idle for {settle_s:g} s", 0.99)
            device.idle(settle_s)
            recording.append("settle", idle_s=settle_s)
    progress.say("done", 1.0)
    return _seal(plan, device, recording, "purge")


def _precondition(plan: Plan, device: Device, recording: Recording) -> Seal:
    progress = Progress(plan, "precondition")
    fill: dict[str, Any] | None = plan.subject["condition"].get("fill")
    if fill is not None:
        cell = fill_cell(fill, plan.subject["class"]["active_range"], device.capacity_bytes)
        written_before = device.sectors_written()

        def tick(elapsed_s: float) -> None:
            share = (device.sectors_written() - written_before) * 512 / (cell.volume_bytes or 1)
            progress.say(f"fill {fill['capacity_multiple']:g} x, {cell.workload}, {share:.0%}", share)

        tick(0.0)
        directory = recording.directory("condition/fill")
        try:
            device.run(cell, directory, 1, tick)
            result = read_result(directory, cell)
        except CellFailed as failure:
            recording.append("failed", stage="precondition", directory="condition/fill", reason=str(failure))
            raise UserError(
                f"drive '{plan.drive}': preconditioning failed: {failure}. The evidence is in {directory}; "
                "mend the cause and run again."
            ) from None
        recording.append("fill", directory="condition/fill", bytes=result.write.bytes, cell=cell.to_mapping())
    progress.say("done", 1.0)
    return _seal(plan, device, recording, "precondition")


def fill_cell(fill: dict[str, Any], active_range: float, capacity_bytes: int) -> Cell:
    """The fill as one cell: one thread, a multiple of the active range in bytes."""
    block = fill["block_size_bytes"]
    span_bytes = int(capacity_bytes * active_range) // block * block
    return Cell(
        pattern=fill["pattern"],
        read_share=0,
        block_size_bytes=block,
        threads=1,
        queue_depth=fill["queue_depth"],
        volume_bytes=int(span_bytes * fill["capacity_multiple"]) // block * block,
        range_share=active_range,
    )
