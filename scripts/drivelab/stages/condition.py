"""Purge and precondition: each stage ensures the state that it starts from and seals the one that it leaves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from drivelab.drives.seal import Seal, Verdict, judge
from drivelab.drives.sysfs import SECTOR_BYTES
from drivelab.errors import UserError
from drivelab.fio.result import CellFailed, read_result
from drivelab.plan.plan import Plan
from drivelab.recording.writer import Recording, now_iso, write_json
from drivelab.stages.device import Device, open_device
from drivelab.stages.fill import FOLDER, Pass, passes, rest
from drivelab.stages.fitting import refuse_unfit
from drivelab.stages.places import place
from drivelab.stages.progress import Progress
from drivelab.stages.scenario import note_scenario, require_scenario
from drivelab.telemetry.sampler import Sampler

NOTHING_TO_DO = "nothing"
"""Stage named by the seal file of a measurement that is recorded already, or begun."""


def purge(plan: Plan, seal_out: Path) -> None:
    """Bring the drive back to as if never written, and seal that; what `measure` may go on with is left to it."""
    recording = Recording(plan)
    if recording.complete or recording.interrupted:
        write_json(seal_out, {"stage": NOTHING_TO_DO})
        return
    with Progress(plan, "purge") as progress, place(plan, progress, last=False), open_device(plan) as device:
        refuse_unfit(plan, device.capacity_bytes, device.logical_block_bytes)
        scenario = require_scenario(plan, device)
        recording.set_aside("the drive was purged for a new start")
        recording.open()
        note_scenario(recording, "purge", scenario)
        write_json(seal_out, _purge(plan, device, recording, progress).to_mapping())


def precondition(plan: Plan, seal_in: Path, seal_out: Path) -> None:
    """Fill the drive as the protocol says, after making sure that it is purged, and seal that."""
    recording = Recording(plan)
    if recording.complete or recording.interrupted:
        write_json(seal_out, {"stage": NOTHING_TO_DO})
        return
    with Progress(plan, "precondition") as progress, place(plan, progress, last=False), open_device(plan) as device:
        scenario = require_scenario(plan, device)
        recording.open()
        note_scenario(recording, "precondition", scenario)
        if not check_seal(plan, device, recording, seal_in, "purge"):
            _purge(plan, device, recording, progress)
        write_json(seal_out, _precondition(plan, device, recording, progress).to_mapping())


def prepare(plan: Plan, device: Device, recording: Recording, progress: Progress) -> None:
    """Purge and precondition in one go: what a measurement does that finds the drive in another state."""
    _purge(plan, device, recording, progress)
    _precondition(plan, device, recording, progress)
    progress.begin("measure")


def check_seal(plan: Plan, device: Device, recording: Recording, path: Path, stage: str) -> bool:
    """Whether the seal in a file vouches for the drive as it is now; the verdict goes into the journal.

    Counters tell of writes and discards, but not of a purge by the drive itself: another recording's chain, broken off
    after its purge, is known by its name.
    """
    try:
        seal = Seal.from_mapping(json.loads(path.read_text()))
    except (OSError, ValueError, TypeError, KeyError):
        verdict = Verdict(False, "there is no readable seal")
    else:
        verdict = judge(seal, stage, device.serial, plan.digest, device.wear())
        if device.last_user not in (None, plan.recording):
            verdict = Verdict(False, f"the drive was used for {device.last_user} since")
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


def _purge(plan: Plan, device: Device, recording: Recording, progress: Progress) -> Seal:
    progress.begin("purge")
    device.take_over()
    condition = plan.subject["condition"]
    if condition["purge"] == "none":
        recording.append("purge", method="none", verified="the protocol wants none")
    else:
        recording.append("purge", **device.purge(condition["purge"], progress.say))
        if settle_s := condition.get("settle_s"):
            progress.say(f"idle for {settle_s:g} s", 0.99)
            device.idle(settle_s)
            recording.append("settle", idle_s=settle_s)
    return _seal(plan, device, recording, "purge")


def _precondition(plan: Plan, device: Device, recording: Recording, progress: Progress) -> Seal:
    progress.begin("precondition")
    device.take_over()
    condition = plan.subject["condition"]
    with _sampler(device, recording):
        for one in passes(plan, device.capacity_bytes):
            with _evidence_kept(plan, recording, one.folder):
                _fill(device, recording, progress, one)
    if "rest_s" in condition:
        with _evidence_kept(plan, recording, FOLDER):
            rest(plan, device, progress, condition["rest_s"])
        recording.append("rest", rest_s=condition["rest_s"], flushed=True)
    return _seal(plan, device, recording, "precondition")


def _sampler(device: Device, recording: Recording) -> Sampler:
    """Telemetry of the fills, apart from that of the measurement: no cell is judged by it."""
    folder, sources = recording.part / FOLDER, device.telemetry_sources()
    if sources:
        folder.mkdir(exist_ok=True)
    return Sampler(sources, folder)


def _fill(device: Device, recording: Recording, progress: Progress, one: Pass) -> None:
    written_before = device.sectors_written()

    def tick(elapsed_s: float) -> None:
        share = (device.sectors_written() - written_before) * SECTOR_BYTES / (one.cell.volume_bytes or 1)
        progress.say(f"{one.words}, {share:.0%}", share)

    tick(0.0)
    directory = recording.directory(one.folder)
    device.run(one.cell, directory, one.seed, tick)
    result = read_result(directory, one.cell)
    recording.append("fill", directory=one.folder, bytes=result.write.bytes, cell=one.cell.to_mapping())


@contextmanager
def _evidence_kept(plan: Plan, recording: Recording, name: str) -> Iterator[None]:
    """What does not hold is put into the journal, and the sentence says where its evidence is."""
    try:
        yield
    except CellFailed as failure:
        recording.append("failed", stage="precondition", directory=name, reason=str(failure))
        raise UserError(
            f"drive '{plan.drive}': preconditioning failed: {failure}. The evidence is in {recording.part / name}; "
            "mend the cause and run again."
        ) from None
