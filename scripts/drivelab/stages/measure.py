"""The measuring process: one recording from the first cell to the manifest, resumed where it was interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import drivelab
from drivelab.drives.host import describe_host
from drivelab.errors import UserError
from drivelab.fio.result import CellFailed
from drivelab.fio.run import fio_version
from drivelab.plan.plan import Plan
from drivelab.recording.writer import Recording
from drivelab.stages.condition import check_seal, prepare
from drivelab.stages.device import Device, open_device
from drivelab.stages.loop import run_loop
from drivelab.stages.progress import Progress
from drivelab.stages.replay import run_replay
from drivelab.stages.soak import run_soak

_STEPS = {"loop": run_loop, "soak": run_soak, "replay": run_replay}


def measure(plan: Plan, seal_in: Path) -> None:
    """Make the recording of a plan, or find that it is there.

    A drive in the state that the seal says is measured at once; one in another state is purged and preconditioned
    first; an interrupted measurement goes on where it stopped, with the gap marked. Raises UserError when a cell
    fails; what was finished before is kept, and the next call goes on from there.
    """
    recording = Recording(plan)
    if recording.complete:
        recording.write_manifest()
        return
    with open_device(plan) as device:
        recording.open()
        _ready(plan, device, recording, seal_in)
        recording.write(
            "identity.json",
            {"drive": plan.drive, "serial": device.serial, "device": plan.context["device"], **device.identity()},
        )
        recording.write("host.json", {**describe_host(), "scenario": plan.subject["scenario"],
                                      "fio": fio_version() if plan.clock == "wall" else "virtual clock",
                                      "engine": device.engine, "drivelab": drivelab.__version__})  # fmt: skip
        recording.append("measure")
        progress = Progress(plan, "measure")
        for number, step in enumerate(plan.subject["measure"]):
            ((kind, fields),) = step.items()
            try:
                _STEPS[kind](plan, device, recording, progress, number, fields)
            except CellFailed as failure:
                recording.append("failed", step=number, reason=str(failure))
                raise UserError(
                    f"drive '{plan.drive}', {plan.measurement}: {failure}. Finished cells are kept in "
                    f"{recording.part}; mend the cause and run again to go on from there."
                ) from None
        progress.say("done", 1.0)
        recording.finish()


def _ready(plan: Plan, device: Device, recording: Recording, seal_in: Path) -> None:
    """Resume, or make sure that the drive is in the state to start from."""
    journal = recording.journal()
    if any(line["event"] == "measure" for line in journal):
        reason = _lost_state(plan, journal, device)
        if reason is None:
            recording.append("gap", reason="the measurement was interrupted and resumed")
            print(f"drive '{plan.drive}': resuming {plan.measurement} where it was interrupted")
            return
        print(f"drive '{plan.drive}': cannot resume {plan.measurement}: {reason}; beginning anew")
        recording.set_aside(reason)
        recording.open()
        prepare(plan, device, recording)
    elif not check_seal(plan, device, recording, seal_in, "precondition"):
        prepare(plan, device, recording)


def _lost_state(plan: Plan, journal: list[dict[str, Any]], device: Device) -> str | None:
    """Why the drive is no longer in the state that an interrupted measurement left; None if it may go on.

    The interrupted cell wrote an amount that nobody knows, so the counters may have risen, but not fallen. What can be
    checked is that the device stayed attached, the host running, and that no other measurement used the drive.
    """
    if device.last_user != plan.recording:
        return f"the drive was used for {device.last_user or 'something unknown'} since"
    seal = next(line["seal"] for line in reversed(journal) if line["event"] == "seal")
    live = device.wear()
    if seal["wear"]["boot_id"] != live.boot_id or seal["wear"]["diskseq"] != live.diskseq:
        return "the drive was attached anew, or the host was started anew"
    if live.sectors_written < seal["wear"]["sectors_written"]:
        return "the drive's write counter went back"
    return None
