"""Measure several drives at the same time: one process per drive, all released together before every step."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from drivelab import parent
from drivelab.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.recording.writer import Recording
from drivelab.stages.barrier import Barrier, conduct, pair

NOT_RESUMED = "drives that are measured at the same time start together, so none resumes or keeps its recording alone"
_COMMAND = "import sys; from drivelab.cli.main import main; sys.exit(main())"


def measure_together(plan_files: Sequence[Path], seals: Sequence[Path]) -> None:
    """Make the recordings of plans whose drives are measured at the same time, unless all exist.

    No drive resumes or repeats alone: if the measurement is incomplete, all its recordings are set aside, also complete
    ones, and all drives restart. If a measuring process fails or dies, the others are stopped, finished recordings are
    kept, and a UserError names the drive.
    """
    plans = [Plan.read(path) for path in plan_files]
    _check(plans, seals)
    recordings = [Recording(plan) for plan in plans]
    if all(recording.complete or _is_measured(recording) for recording in recordings):
        for recording in recordings:
            if recording.complete:
                recording.write_manifest()
            else:
                recording.finish()
        return
    for recording in recordings:
        _put_away(recording)
    with _processes(plans, plan_files, seals) as (processes, connections):
        failed = conduct(connections, lambda drive: processes[drive].wait() == 0,
                         lambda drive: processes[drive].terminate())  # fmt: skip
        if failed is not None:
            raise UserError(_failure(plans, failed, processes[failed].wait()))


def start_together(barrier: Barrier, recording: Recording, step: int) -> None:
    """Wait before a step until all drives are ready, then return in all processes at once.

    After the last step, `step` is the number of steps. The journal is written before the second wait, so that the step
    starts immediately after it.
    """
    ready_s = time.monotonic()
    release = barrier.wait(f"ready for step {step}", _first_start_s(recording.journal(), step - 1))
    waited_s = round(time.monotonic() - ready_s, 6) if recording.plan.clock == "wall" else 0.0
    if release.skew_s is not None:
        recording.append("started-together", step=step - 1, skew_s=round(release.skew_s, 6))
    recording.append("together", step=step, waited_s=waited_s, **{"with": list(release.others)})
    barrier.wait(f"step {step}")


def _first_start_s(journal: Sequence[Mapping[str, Any]], step: int) -> float | None:
    """Return the start of a step's first process, Unix time in seconds; None in simulated time."""
    return min((line["started_s"] for line in journal if line.get("step") == step and "ended_s" in line), default=None)


def _check(plans: Sequence[Plan], seals: Sequence[Path]) -> None:
    if len(plans) != len(seals):
        raise UserError(f"{len(plans)} plans and {len(seals)} seals are named; give a seal for each plan, in its order")
    serials = sorted(plan.subject["drive"]["serial"] for plan in plans)
    for plan in plans:
        if plan.subject.get("simultaneous") != serials:
            raise UserError(
                f"{plan.recording} must be measured at the same time as {_others(plan)}, but the plans are for "
                f"{', '.join(serials)}; name the plans of one measurement, or use 'drivelab measure'"
            )


def _others(plan: Plan) -> str:
    own = plan.subject["drive"]["serial"]
    return ", ".join(serial for serial in plan.subject.get("simultaneous", ()) if serial != own) or "no other drive"


def _is_measured(recording: Recording) -> bool:
    """Return whether all steps were done when the process ended: it passed the barrier after the last step."""
    steps = len(recording.plan.subject["measure"])
    return any(line["event"] == "together" and line["step"] == steps for line in recording.journal())


def _put_away(recording: Recording) -> None:
    """Set aside a complete recording, because the measurement must be repeated for all its drives."""
    if recording.complete:
        print(f"drive '{recording.plan.drive}': the recording is set aside: {NOT_RESUMED}")
        recording.set_aside(NOT_RESUMED)
        recording.final.rename(recording.part)
        recording.set_aside(NOT_RESUMED)


@contextmanager
def _processes(
    plans: Sequence[Plan], plan_files: Sequence[Path], seals: Sequence[Path]
) -> Iterator[tuple[dict[str, subprocess.Popen[bytes]], dict[str, socket.socket]]]:
    """Start a measuring process per drive, with a connection to it.

    All end with the block. The processes share this process's group, and end normally if this process is killed.
    """
    processes: dict[str, subprocess.Popen[bytes]] = {}
    with ExitStack() as stack:
        connections: dict[str, socket.socket] = {}
        try:
            for plan, plan_file, seal in zip(plans, plan_files, seals, strict=True):
                connections[plan.drive], theirs = (stack.enter_context(end) for end in pair())
                command = [sys.executable, "-c", _COMMAND, "measure", str(plan_file), "--after", str(seal)]
                processes[plan.drive] = parent.start(
                    [*command, "--barrier", str(theirs.fileno())], signal="TERM", pass_fds=[theirs.fileno()]
                )
                theirs.close()
            yield processes, connections
        finally:
            for process in processes.values():
                if process.poll() is None:
                    process.terminate()
            for process in processes.values():
                process.wait()


def _failure(plans: Sequence[Plan], failed: str, status: int) -> str:
    end = f"was killed by signal {signal.Signals(-status).name}" if status < 0 else "failed, see above"
    return (
        f"{plans[0].measurement} on {', '.join(plan.drive for plan in plans)} at the same time: the measurement of "
        f"drive '{failed}' {end}, so the others were stopped too. Finished cells are kept next to the recordings. Fix "
        "the cause and run again; all drives restart together."
    )
