"""Purge and precondition: each stage ensures its initial drive state and seals its final state."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from drivelab.core.errors import CellFailed, UserError
from drivelab.core.terminal import say
from drivelab.drives.purge.by_host import discards
from drivelab.drives.seal import Seal, Verdict, judge
from drivelab.drives.sysfs import SECTOR_BYTES
from drivelab.fio.result import read_result
from drivelab.host.settings import HOST, deviations, snapshot
from drivelab.plan.cell import Cell
from drivelab.plan.fitting import refuse_unfit
from drivelab.plan.plan import Plan
from drivelab.recording.writer import Recording, now_iso, write_json
from drivelab.run.device import Device, open_device
from drivelab.run.fill import AS_EMPTY, FOLDER, MOST_RESTS, Pass, passes, probe_cell, probes, rest
from drivelab.run.places import place
from drivelab.run.progress import Progress
from drivelab.telemetry.sampler import Sampler


def require_scenario(plan: Plan, device: Device) -> dict[str, Any] | None:
    """Return the journal's facts on the host's settings.

    None if the protocol requires no scenario. On the virtual clock the host has no effect. An unreadable setting does
    not deviate; the facts count such settings. Raises UserError with the settings that deviate, before drivelab writes
    to the drive.
    """
    if not plan.subject["condition"].get("scenario_required"):
        return None
    scenario = plan.subject["scenario"]
    if plan.clock == "virtual":
        return {"scenario": scenario, "checked": False, "reason": "on the virtual clock the host has no effect"}
    rows = snapshot(device.settings_of, scenario)
    wrong = deviations(rows)
    if wrong:
        details = "; ".join(_deviation(row) for row in wrong)
        raise UserError(
            f"drive '{plan.drive}': {plan.measurement} requires the host settings of scenario '{scenario}', but "
            f"{len(wrong)} settings differ: {details}. Set `host_settings: apply` in the study, or change them by hand "
            "as docs/host_settings.md says, and run again. Nothing was written."
        )
    return {"scenario": scenario, "checked": True, "deviations": [], "settings": len(rows),
            "unknown": sum(row["deviation"] is None for row in rows)}  # fmt: skip


def note_scenario(recording: Recording, stage: str, facts: Mapping[str, Any] | None) -> None:
    """Append the facts of `require_scenario` to the journal, if there are any."""
    if facts is not None:
        recording.append("scenario", stage=stage, **facts)


def note_neighbours(recording: Recording, stage: str, device: Device) -> None:
    """Append to the journal that a stage changed nothing beside a partition; raises UserError if not."""
    facts = device.compare_neighbours()
    if facts is not None:
        recording.append("neighbours", stage=stage, **facts)


def _deviation(row: dict[str, Any]) -> str:
    name = row["name"] if row["scope"] == HOST else f"{row['name']} of {row['scope']}"
    return f"{name} is {row['state']}, required {row['wanted']}"


NO_PURGE = {"method": "none", "verified": "the protocol requires no purge"}
NOT_PURGED = {"method": "none", "title": "not purged", "verified": "the study sets purge: none"}
NOTHING_TO_DO = "nothing"
"""Stage in the seal file of a measurement that is already recorded or started, or that prepares its own file."""


def purge(plan: Plan, seal_out: Path) -> None:
    """Purge the drive and seal that state; do nothing if `measure` may resume the recording, or does it all."""
    recording = Recording(plan)
    if recording.complete or recording.interrupted or not plan.lasts:
        write_json(seal_out, {"stage": NOTHING_TO_DO})
        return
    with Progress(plan, "purge") as progress, place(plan, progress, last=False), open_device(plan) as device:
        trims = not device.name or discards(device.name)  # a drive on the virtual clock has no name
        refuse_unfit(plan, device.capacity_bytes, device.logical_block_bytes, trims=trims)
        scenario = require_scenario(plan, device)
        recording.set_aside("the drive was purged for a restart")
        recording.open()
        note_scenario(recording, "purge", scenario)
        seal = _purge(plan, device, recording, progress)
        note_neighbours(recording, "purge", device)
        write_json(seal_out, seal.to_mapping())


def precondition(plan: Plan, seal_in: Path, seal_out: Path) -> None:
    """Fill the drive as the protocol says, purging it first if necessary, and seal that state.

    Does nothing where `purge` does nothing.
    """
    recording = Recording(plan)
    if recording.complete or recording.interrupted or not plan.lasts:
        write_json(seal_out, {"stage": NOTHING_TO_DO})
        return
    with Progress(plan, "precondition") as progress, place(plan, progress, last=False), open_device(plan) as device:
        scenario = require_scenario(plan, device)
        recording.open()
        note_scenario(recording, "precondition", scenario)
        if not check_seal(plan, device, recording, seal_in, "purge"):
            _purge(plan, device, recording, progress)
        seal = _precondition(plan, device, recording, progress)
        note_neighbours(recording, "precondition", device)
        write_json(seal_out, seal.to_mapping())


def prepare(plan: Plan, device: Device, recording: Recording, progress: Progress) -> None:
    """Purge and precondition: a measurement does both if the drive is not in the sealed state."""
    _purge(plan, device, recording, progress)
    _precondition(plan, device, recording, progress)
    progress.begin("measure")


def check_seal(plan: Plan, device: Device, recording: Recording, path: Path, stage: str) -> bool:
    """Return whether the seal in a file matches the drive's present state.

    Append the verdict to the journal. Counters show writes and discards, but not a purge that the drive does itself. So
    the name of the last recording shows when another chain purged the drive and stopped. A subject whose state does
    not last has no seal.
    """
    if not device.lasts:
        return False
    try:
        seal = Seal.from_mapping(json.loads(path.read_text()))
    except (OSError, ValueError, TypeError, KeyError):
        verdict = Verdict(False, "there is no readable seal")
    else:
        verdict = judge(seal, stage, device.identified, plan.digest, device.wear())
        if device.last_user not in (None, plan.recording):
            verdict = Verdict(False, f"the drive was used for {device.last_user} in the meantime")
    recording.append("verdict", stage=stage, intact=verdict.intact, reason=verdict.reason)
    if not verdict.intact:
        say(f"drive '{plan.drive}': seal after {stage} is broken: {verdict.reason}; purging and preconditioning again")
    return verdict.intact


def _seal(plan: Plan, device: Device, recording: Recording, stage: str) -> Seal:
    seal = Seal(stage, device.identified, plan.digest, device.wear(), now_iso())
    recording.append("seal", seal=seal.to_mapping())
    return seal


def _purge(plan: Plan, device: Device, recording: Recording, progress: Progress) -> Seal:
    progress.begin("purge")
    device.take_over()
    condition = plan.subject["condition"]
    if condition["purge"] == "none":
        recording.append("purge", **(NOT_PURGED if condition.get("not_purged") else NO_PURGE))
    else:
        recording.append("purge", **device.purge(condition["purge"], progress.say))
        if settle_s := condition.get("settle_s"):
            progress.say(f"idle for {settle_s:g} s", 0.99)
            device.idle(settle_s)
            recording.append("settle", idle_s=settle_s)
    if (made := device.make_file_system()) is not None:
        recording.append("file_system", **made)
    return _seal(plan, device, recording, "purge")


def _precondition(plan: Plan, device: Device, recording: Recording, progress: Progress) -> Seal:
    progress.begin("precondition")
    device.take_over()
    condition = plan.subject["condition"]
    fills = list(passes(plan, device.capacity_bytes))
    probed = probe_cell(fills[0].cell, device.capacity_bytes) if probes(plan.subject) else None
    empty_us = None
    with _sampler(device, recording):
        if probed is not None:
            empty_us = _probe(plan, device, recording, probed, "probe-empty")
        for fill in fills:
            with _evidence_kept(plan, recording, fill.folder):
                _fill(device, recording, progress, fill)
    if "rest_s" in condition:
        _rest(plan, device, recording, progress, probed, empty_us)
    return _seal(plan, device, recording, "precondition")


def _probe(plan: Plan, device: Device, recording: Recording, cell: Cell, name: str) -> float:
    """Return the mean latency of a short write in microseconds."""
    folder = f"{FOLDER}/{name}"
    with _evidence_kept(plan, recording, folder):
        directory = recording.directory(folder)
        device.run(cell, directory, 1, lambda _: None)
        latency_us = read_result(directory, cell).write.mean_latency_us
        device.flush()  # or the drive would still be writing it during the first cell
    recording.append("probe", directory=folder, mean_latency_us=latency_us, cell=cell.to_mapping())
    return latency_us


def _rest(
    plan: Plan,
    device: Device,
    recording: Recording,
    progress: Progress,
    probed: Cell | None,
    empty_us: float | None,
) -> None:
    """Rest until a short write is as fast as on the empty drive, at most MOST_RESTS times.

    Without `probed`, rest once; nothing tells whether the cache is empty.
    """
    rest_s = plan.subject["condition"]["rest_s"]
    facts: dict[str, Any] = {}
    for number in range(1, MOST_RESTS + 1):
        with _evidence_kept(plan, recording, FOLDER):
            rest(plan, device, progress, rest_s)
        if probed is None or empty_us is None:
            break
        rested_us = _probe(plan, device, recording, probed, f"probe-rested-{number}")
        as_empty = rested_us * AS_EMPTY <= empty_us
        facts = {"rests": number, "empty_us": empty_us, "rested_us": rested_us, "as_empty": as_empty}
        if as_empty:
            break
    recording.append("rest", rest_s=rest_s, flushed=True, **facts)
    if facts and not facts["as_empty"]:
        say(
            f"drive '{plan.drive}': after {MOST_RESTS} times {rest_s:g} s of rest a write still takes "
            f"{facts['rested_us'] / empty_us:.1f} times as long as on the empty drive: its cache may not be free"
        )


def _sampler(device: Device, recording: Recording) -> Sampler:
    """Return the sampler for the fills; their telemetry is separate, because no cell is judged by it."""
    folder, sources = recording.part / FOLDER, device.telemetry_sources()
    if sources:
        folder.mkdir(exist_ok=True)
    return Sampler(sources, folder)


def _fill(device: Device, recording: Recording, progress: Progress, fill: Pass) -> None:
    written_before = device.sectors_written()

    def tick(elapsed_s: float) -> None:
        share = (device.sectors_written() - written_before) * SECTOR_BYTES / (fill.cell.volume_bytes or 1)
        progress.say(f"{fill.words}, {share:.0%}", share)

    tick(0.0)
    directory = recording.directory(fill.folder)
    device.run(fill.cell, directory, fill.seed, tick)
    result = read_result(directory, fill.cell)
    recording.append("fill", directory=fill.folder, bytes=result.bytes, cell=fill.cell.to_mapping())


@contextmanager
def _evidence_kept(plan: Plan, recording: Recording, name: str) -> Iterator[None]:
    """Append a failure to the journal, and raise UserError with the place of the evidence."""
    try:
        yield
    except CellFailed as failure:
        recording.append("failed", stage="precondition", directory=name, reason=str(failure))
        raise UserError(
            f"drive '{plan.drive}': preconditioning failed: {failure}. The evidence is in {recording.part / name}; "
            "fix the cause and run again."
        ) from None
