"""Several drives measured at the same time: one process for each, started together before every step."""

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

ANEW = "drives that are measured at the same time begin together, so none of them goes on or stays alone"
_COMMAND = "import sys; from drivelab.cli.main import main; sys.exit(main())"


def measure_together(plan_files: Sequence[Path], seals: Sequence[Path]) -> None:
    """Make the recordings of plans whose drives are measured at the same time, or find that they are there.

    Nothing of it is resumed or repeated for one drive alone: what is there of an incomplete measurement is set aside,
    complete recordings of some of the drives included, and all begin anew. Raises UserError, naming the drive, when
    one of the measuring processes fails or dies; the others are ended then, and what is finished is kept.
    """
    plans = [Plan.read(path) for path in plan_files]
    _check(plans, seals)
    recordings = [Recording(plan) for plan in plans]
    if all(one.complete or _is_measured(one) for one in recordings):
        for one in recordings:
            if one.complete:
                one.write_manifest()
            else:
                one.finish()
        return
    for one in recordings:
        _put_away(one)
    with _processes(plans, plan_files, seals) as (processes, connections):
        failed = conduct(connections, lambda drive: processes[drive].wait() == 0,
                         lambda drive: processes[drive].terminate())  # fmt: skip
        if failed is not None:
            raise UserError(_failure(plans, failed, processes[failed].wait()))


def start_together(barrier: Barrier, recording: Recording, step: int) -> None:
    """Wait before a step, or with the number of steps after the last, until all drives are there; then all begin.

    What is to be told is on disk before the second wait, so that nothing but the step is left to do after it.
    """
    ready_s = time.monotonic()
    release = barrier.wait(f"ready for step {step}", _first_start_s(recording.journal(), step - 1))
    waited_s = round(time.monotonic() - ready_s, 6) if recording.plan.clock == "wall" else 0.0
    if release.skew_s is not None:
        recording.append("started-together", step=step - 1, skew_s=round(release.skew_s, 6))
    recording.append("together", step=step, waited_s=waited_s, **{"with": list(release.others)})
    barrier.wait(f"step {step}")


def _first_start_s(journal: Sequence[Mapping[str, Any]], step: int) -> float | None:
    """When the first process of a step was started, seconds since 1970; None where no real time passed."""
    return min((line["started_s"] for line in journal if line.get("step") == step and "ended_s" in line), default=None)


def _check(plans: Sequence[Plan], seals: Sequence[Path]) -> None:
    if len(plans) != len(seals):
        raise UserError(f"{len(plans)} plans and {len(seals)} seals are named; give a seal for each plan, in its order")
    serials = sorted(plan.subject["drive"]["serial"] for plan in plans)
    for plan in plans:
        if plan.subject.get("simultaneous") != serials:
            raise UserError(
                f"{plan.recording}: is to be measured at the same time as {_those_of(plan)}, the plans are of "
                f"{', '.join(serials)}; name the plans of one measurement, or use 'drivelab measure'"
            )


def _those_of(plan: Plan) -> str:
    own = plan.subject["drive"]["serial"]
    return ", ".join(one for one in plan.subject.get("simultaneous", ()) if one != own) or "no other drive"


def _is_measured(recording: Recording) -> bool:
    """Whether all steps were done when the process ended: it passed the barrier after the last of them."""
    steps = len(recording.plan.subject["measure"])
    return any(line["event"] == "together" and line["step"] == steps for line in recording.journal())


def _put_away(recording: Recording) -> None:
    """A complete recording of a measurement that is to be repeated for all its drives."""
    if recording.complete:
        print(f"drive '{recording.plan.drive}': the recording is set aside: {ANEW}")
        recording.set_aside(ANEW)
        recording.final.rename(recording.part)
        recording.set_aside(ANEW)


@contextmanager
def _processes(
    plans: Sequence[Plan], plan_files: Sequence[Path], seals: Sequence[Path]
) -> Iterator[tuple[dict[str, subprocess.Popen[bytes]], dict[str, socket.socket]]]:
    """A measuring process and the connection to it by drive; none is left at the end, nor if this process is killed.

    They are in this one's process group, and end in order when it dies.
    """
    processes: dict[str, subprocess.Popen[bytes]] = {}
    with ExitStack() as stack:
        connections: dict[str, socket.socket] = {}
        try:
            for plan, plan_file, seal in zip(plans, plan_files, seals, strict=True):
                connections[plan.drive], theirs = (stack.enter_context(one) for one in pair())
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
    how = f"was killed by signal {signal.Signals(-status).name}" if status < 0 else "failed, see above"
    return (
        f"{plans[0].measurement} on {', '.join(plan.drive for plan in plans)} at the same time: the measurement of "
        f"drive '{failed}' {how}, so the others were ended too. What is finished is kept beside the recordings; mend "
        "the cause and run again, and all of them begin anew together."
    )
