"""The measuring process: makes one recording, from the first cell to the manifest, and resumes it if interrupted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import drivelab
from drivelab.drives.host import describe_host
from drivelab.errors import UserError
from drivelab.fio.result import CellFailed
from drivelab.fio.run import fio_version
from drivelab.host.settings import snapshot
from drivelab.plan.plan import Plan
from drivelab.recording.writer import Recording
from drivelab.stages.application import run_application
from drivelab.stages.barrier import Barrier
from drivelab.stages.cell import Bench
from drivelab.stages.condition import check_seal, prepare
from drivelab.stages.device import Device, open_device
from drivelab.stages.idle import run_idle
from drivelab.stages.loop import run_loop
from drivelab.stages.places import place
from drivelab.stages.progress import Progress
from drivelab.stages.replay import run_replay
from drivelab.stages.resume import lost_state, other_versions
from drivelab.stages.scenario import note_scenario, require_scenario
from drivelab.stages.schedules import Schedules
from drivelab.stages.soak import run_soak
from drivelab.stages.together import NOT_RESUMED, start_together
from drivelab.telemetry.log import read_lines

_STEPS = {"loop": run_loop, "soak": run_soak, "idle": run_idle, "replay": run_replay,
          "application": run_application}  # fmt: skip


def measure(plan: Plan, seal_in: Path, barrier: Barrier | None = None) -> None:
    """Make the recording of a plan, unless it exists.

    A drive in the sealed state is measured at once; otherwise it is purged and preconditioned first. An interrupted
    measurement resumes, with the gap marked. Raises UserError when a cell fails; finished cells are kept, and the next
    call resumes.

    With a `barrier` each step starts together with the measurements of other drives. Such a measurement never resumes.
    """
    if (barrier is None) == ("simultaneous" in plan.subject):
        raise UserError(
            f"{plan.recording} is measured at the same time as other drives; use 'drivelab measure-together'"
            if barrier is None
            else f"{plan.recording} is measured alone; use 'drivelab measure'"
        )
    recording = Recording(plan)
    if recording.complete:
        recording.write_manifest()
        return
    if recording.measured and barrier is None:
        recording.finish()
        return
    with Progress(plan, "measure") as progress, place(plan, progress, last=True), open_device(plan) as device:
        scenario = require_scenario(plan, device)
        recording.open()
        note_scenario(recording, "measure", scenario)
        host = {**describe_host(), "scenario": plan.subject["scenario"],
                "fio": fio_version() if plan.clock == "wall" else "virtual clock",
                "engine": device.engine, "drivelab": drivelab.__version__}  # fmt: skip
        _ready(plan, device, recording, seal_in, host, progress, alone=barrier is None)
        recording.write(
            "identity.json",
            {"drive": plan.drive, "serial": device.serial, "device": plan.context["device"], **device.identity()},
        )
        recording.write("host.json", host)
        if plan.clock == "wall":
            recording.write("settings.json", snapshot([device.name], plan.subject["scenario"]))
        recording.append("measure", wear=asdict(device.wear()))
        with Schedules(plan, device, recording) as schedules:
            _take_steps(Bench(plan, device, recording, schedules), progress, barrier)
        if barrier is not None:
            start_together(barrier, recording, len(plan.subject["measure"]))
        recording.finish()


def _ready(
    plan: Plan, device: Device, recording: Recording, seal_in: Path, host: Mapping[str, Any], progress: Progress,
    *, alone: bool,
) -> None:  # fmt: skip
    """Resume, or ensure that the drive is in its initial state."""
    journal = recording.journal()
    if any(line["event"] == "measure" for line in journal):
        samples = read_lines(recording.part)
        reason = NOT_RESUMED if not alone else lost_state(
            plan.recording, device.last_user, journal, samples, device.wear(), virtual_clock=plan.clock == "virtual"
        )  # fmt: skip
        reason = reason or other_versions(recording.part, {**host, **device.identity()})
        if reason is None:
            device.take_over()
            recording.append(
                "resumed" if device.undoes else "gap", reason="the measurement was interrupted and resumed"
            )
            print(f"drive '{plan.drive}': resuming {plan.measurement} where it was interrupted")
            return
        print(f"drive '{plan.drive}': cannot resume {plan.measurement}: {reason}; restarting")
        recording.set_aside(reason)
        recording.open()
        prepare(plan, device, recording, progress)
    elif not check_seal(plan, device, recording, seal_in, "precondition"):
        prepare(plan, device, recording, progress)
    device.take_over()


def _take_steps(bench: Bench, progress: Progress, barrier: Barrier | None) -> None:
    plan, recording = bench.plan, bench.recording
    with bench.telemetry, bench.device.telling(recording.part):
        for number, step in enumerate(plan.subject["measure"]):
            ((kind, fields),) = step.items()
            if barrier is not None:
                start_together(barrier, recording, number)
            try:
                _STEPS[kind](bench, progress, number, fields)
            except CellFailed as failure:
                recording.append("failed", step=number, reason=str(failure))
                action = "to resume" if barrier is None else "to restart"
                raise UserError(
                    f"drive '{plan.drive}', {plan.measurement}: {failure}. Finished cells are kept in "
                    f"{recording.part}; fix the cause and run again {action}."
                ) from None
