"""Measure several drives at the same time: one process per drive, all released together before every step."""

from __future__ import annotations

import json
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.core import programs
from drivelab.core.errors import UserError
from drivelab.core.terminal import say
from drivelab.plan.plan import Plan
from drivelab.recording.writer import MANIFEST, Recording

_LONGEST_MESSAGE = 65536
Connections = Mapping[str, socket.socket]


def pair() -> tuple[socket.socket, socket.socket]:
    """Return two connected ends: the conductor's and the party's. Messages arrive whole; a closed end is detected."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


@dataclass(frozen=True)
class Release:
    """What each party receives when all parties are ready."""

    others: tuple[str, ...]
    """The other parties."""
    skew_s: float | None
    """Time between the first and the last start of the step before, seconds; None where no real time passed."""


class Barrier:
    """A party's end of the connection; `conduct` has the other end."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.set_inheritable(False)  # child processes must not keep the connection open

    def wait(self, point: str, started_s: float | None = None) -> Release:
        """Wait until all parties are at the same point.

        `started_s` is when this party began the previous step. Raises UserError when another party or the conductor is
        gone.
        """
        sent = _send(self._connection, {"point": point, "started_s": started_s})
        answer = _receive(self._connection) if sent else None
        if answer is None:
            raise UserError("the process that starts all drives at the same time has ended; run again")
        if "gone" in answer:
            raise UserError(
                f"the measurement of drive '{answer['gone']}' ended early, so the drives that are measured at the "
                "same time stop too; fix the cause and run again"
            )
        return Release(tuple(answer["others"]), answer["skew_s"])


def conduct(connections: Connections, done: Callable[[str], bool], end: Callable[[str], None]) -> str | None:
    """Release the parties together at each point until all have closed their connections.

    `done` returns whether a party that closed its connection has completed its work. If it has not, `end` is called for
    each running party; parties that wait, now or later, receive the name of the failed party. Returns that name, or
    None if all parties completed.
    """
    waiting: dict[str, dict[str, Any]] = {}
    present, failed = set(connections), None
    with selectors.DefaultSelector() as selector:
        for name, connection in connections.items():
            selector.register(connection, selectors.EVENT_READ, name)
        while present:
            for key, _ in selector.select():
                message = _receive(connections[key.data])
                if message is not None:
                    waiting[key.data] = message
                    continue
                selector.unregister(connections[key.data])
                present.remove(key.data)
                waiting.pop(key.data, None)
                if failed is None and not done(key.data):
                    failed = key.data
                    for name in present - waiting.keys():
                        end(name)
            if waiting.keys() == connections.keys():
                _let_go(connections, waiting)
                waiting.clear()
            elif waiting and len(present) < len(connections):
                failed = failed or next(name for name in connections if name not in present)
                for name in waiting:
                    _send(connections[name], {"gone": failed})
                waiting.clear()
    return failed


def _let_go(connections: Connections, waiting: Mapping[str, Mapping[str, Any]]) -> None:
    points = {message["point"] for message in waiting.values()}
    assert len(points) == 1, f"the parties are at different points: {points}"  # they have the same steps
    skew_s = _skew_s(message["started_s"] for message in waiting.values())
    for name, connection in connections.items():
        _send(connection, {"others": [other for other in connections if other != name], "skew_s": skew_s})


def _skew_s(starts_s: Iterable[float | None]) -> float | None:
    known = [start_s for start_s in starts_s if start_s is not None]
    return max(known) - min(known) if len(known) > 1 else None


def _send(connection: socket.socket, message: Mapping[str, Any]) -> bool:
    """Send a message; return False if the other end is closed, which the next read reports."""
    try:
        connection.send(json.dumps(message).encode())
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True


def _receive(connection: socket.socket) -> dict[str, Any] | None:
    """Return the next message; None when the other end is closed, even if it left a message unread."""
    try:
        message = connection.recv(_LONGEST_MESSAGE)
    except ConnectionResetError:
        return None
    return dict(json.loads(message)) if message else None


NOT_RESUMED = "drives that are measured at the same time start together, so none resumes or keeps its recording alone"
_COMMAND = "import sys; from drivelab.cli.main import main; sys.exit(main())"


def measure_together(plan_files: Sequence[Path], seals: Sequence[Path]) -> None:
    """Make the recordings of plans whose drives are measured at the same time, unless all exist.

    A manifest that was missing is left to `measure`: Snakemake would remove it at the start of that job.
    No drive resumes or repeats alone: if the measurement is incomplete, all its recordings are set aside, also complete
    ones, and all drives restart. If a measuring process fails or dies, the others are stopped, finished recordings are
    kept, and a UserError names the drive.
    """
    plans = [Plan.read(path) for path in plan_files]
    _check(plans, seals)
    recordings = [Recording(plan) for plan in plans]
    manifests = [plan.recording_path / MANIFEST for plan in plans]
    missing = [path for path in manifests if not path.exists()]
    if all(recording.complete or _is_measured(recording) for recording in recordings):
        for recording in recordings:
            if not recording.complete:
                recording.finish()
    else:
        _measure_all(plans, plan_files, seals, recordings)
    for path in missing:
        path.unlink(missing_ok=True)


def _measure_all(
    plans: Sequence[Plan], plan_files: Sequence[Path], seals: Sequence[Path], recordings: Sequence[Recording]
) -> None:
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
        say(f"drive '{recording.plan.drive}': the recording is set aside: {NOT_RESUMED}")
        recording.set_aside(NOT_RESUMED)
        (recording.final / MANIFEST).unlink(missing_ok=True)  # what is set aside is no recording
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
                command = [*programs.python("-c", _COMMAND), "measure", str(plan_file), "--after", str(seal)]
                processes[plan.drive] = programs.start(
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
