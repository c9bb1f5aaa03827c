"""Status files: what each drive's stage is doing, and why stages failed or were interrupted."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.heartbeat import SILENT_S, Heartbeat
from drivelab.plan.hosts import refuse_elsewhere, this_host
from drivelab.plan.plan import Plan
from drivelab.recording.writer import Recording, read_object, write_json
from drivelab.trace.capturing.capture_report import alive, boot_id, started

_RECORDING = re.compile(r"[A-Za-z0-9@._-]{1,200}(/[A-Za-z0-9@._-]{1,200}){2}")
_MOST = 1e11
"""Limit of a number in a status: as a time, the year 5138; the C library's calendar may not handle later times."""
_TRIES = 2
"""Failures after which a measurement no longer reserves its drive."""


@dataclass(frozen=True)
class Status:
    """The last status of a stage."""

    recording: str
    stage: str
    text: str
    """Present activity, for example `round 4 of at most 25, RND 4KiB 0/100 T2Q8, 2,310 IOPS`."""
    fraction: float
    """Estimated share of the stage that is done; 1 at the end."""
    pid: int
    at_s: float
    """Last sign of life, Unix time in seconds."""
    state: str = "running"
    """`running`, `done`, `failed` or `interrupted`, as the stage itself reported; see also `state_now`."""
    reason: str | None = None
    """Why the stage failed, in a sentence."""
    since_s: float = 0.0
    """When the stage began, Unix time in seconds."""
    host: str = ""
    boot_id: str = ""
    """Boot ID of the host's kernel: if the host has another boot ID now, the process is gone."""
    process: str = ""
    """Start of the process in ticks since boot, because process IDs recur, and its PID namespace."""
    failures: int = 0
    """Failures of the recording's stages since the drive was last used for another recording."""

    @property
    def drive(self) -> str:
        """The drive, as in `Plan.drive`."""
        return self.recording.partition("/")[0]


class Progress:
    """Writes `status/DRIVE.json` in the results folder.

    A reader always finds a complete file. Within the `with` block the file shows that the process is alive. When the
    drive starts another recording, the status of a failed or killed one moves to `status/RECORDING.json`, with its
    reason, until that recording resumes.
    """

    def __init__(self, plan: Plan, stage: str) -> None:
        self._plan = plan
        self._path = status_path(plan)
        now_s = time.time()
        self._status = Status(plan.recording, stage, "begins", 0.0, os.getpid(), now_s, since_s=now_s)
        self._lock, self._heartbeat = threading.Lock(), Heartbeat(self._put)

    def __enter__(self) -> Progress:
        """Start the status file.

        Raises UserError if the plan belongs to another host, whose status must not be lost, or if the drive is reserved
        for a measurement that was killed, or that failed and was not retried.
        """
        refuse_elsewhere(self._plan)
        before, failures = _status_in(status_path(self._plan)), 0
        if before is not None and before.recording != self._plan.recording:
            _refuse_to_lose(self._plan, before)
            _put_aside(self._plan, before)
        elif before is not None:
            failures = before.failures
        _aside(self._plan, self._plan.recording).unlink(missing_ok=True)
        self._put(host=this_host(), boot_id=boot_id(), process=process_start(os.getpid()), failures=failures)
        self._heartbeat.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._heartbeat.end()
        if error is None:
            self._put(state="done", text="done", fraction=1.0)
            return
        with suppress(OSError):  # on a full disk, the original error matters more
            if isinstance(error, Exception):
                reason = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
                self._put(state="failed", reason=reason, failures=self._status.failures + 1)
            else:
                self._put(state="interrupted")

    def begin(self, stage: str) -> None:
        """Start another stage within the same process."""
        self._put(stage=stage, since_s=time.time(), text="begins", fraction=0.0)

    def say(self, text: str, fraction: float) -> None:
        """Report the present activity; see `Status`."""
        self._put(text=text, fraction=round(min(fraction, 1.0), 4))

    def _put(self, **changes: Any) -> None:
        with self._lock:
            self._status = replace(self._status, at_s=time.time(), **changes)
            write_json(self._path, asdict(self._status), lasting=False)


def _refuse_to_lose(plan: Plan, before: Status) -> None:
    """Raise UserError if a measurement that can resume still keeps the drive.

    If another measurement purged the drive, the first would have to restart, and its cells and fills would be lost.
    """
    if not keeps_drive(before):
        return
    planned = Path(plan.context["results"]) / "plans" / f"{before.recording}.json"
    if not planned.exists():  # no longer part of the study
        return
    other = Recording(Plan.read(planned))
    if "simultaneous" in other.plan.subject or other.measured:  # never resumed, or no longer needs the drive
        return
    if any(line["event"] in ("fill", "measure") for line in other.journal()):
        raise UserError(
            f"drive '{plan.drive}' is reserved for {before.recording}, which {_ENDS[state_now(before)]}. Another "
            "measurement would purge the drive, and that one would have to restart. Run again: drivelab continues it "
            f"first. To give it up, remove {other.part}."
        )


_ENDS = {"interrupted": "was interrupted", "failed": "failed"}


def keeps_drive(status: Status) -> bool:
    """Return whether a measurement reserves its drive: it was killed, or it failed and was not retried."""
    state = state_now(status)
    return state == "interrupted" or (state == "failed" and status.failures < _TRIES)


def _put_aside(plan: Plan, before: Status) -> None:
    """Keep the previous stage's status, unless it succeeded, before its file is overwritten."""
    state = "failed" if before.state == "failed" else "interrupted"
    if state_now(before) in ("failed", "interrupted", "silent"):
        write_json(_aside(plan, before.recording), asdict(replace(before, state=state)))


def _aside(plan: Plan, recording: str) -> Path:
    return Path(plan.context["results"]) / "status" / f"{recording}.json"


def status_path(plan: Plan) -> Path:
    """Return the path of the status file of a plan's drive."""
    return Path(plan.context["results"]) / "status" / f"{plan.drive}.json"


def read_status(results: Path) -> list[Status]:
    """Return the statuses in a results folder; invalid files are skipped."""
    statuses = filter(None, map(_status_in, results.glob("status/*.json")))
    return sorted(statuses, key=lambda status: status.drive)


def read_aside(results: Path, recording: str) -> Status | None:
    """Return the kept status of a recording that failed or was killed, or None."""
    return _status_in(results / "status" / f"{recording}.json")


def _status_in(path: Path) -> Status | None:
    return status_of(read_object(path))


def status_of(body: Mapping[str, Any]) -> Status | None:
    """Return the status in a file, or None if a field is missing or invalid: any process may write files."""
    values = {field.name: body[field.name] for field in fields(Status) if field.name in body}
    if not all(_is_of_kind(field.type, values[field.name]) for field in fields(Status) if field.name in values):
        return None
    try:
        status = Status(**values)
    except TypeError:
        return None
    named = _RECORDING.fullmatch(status.recording) and ".." not in status.recording.split("/")
    return status if named and status.state in _STATES else None


_STATES = ("running", "done", "failed", "interrupted")


def _is_of_kind(kind: Any, value: Any) -> bool:
    """Return whether a value has a field's type, as declared in `Status`; numbers must be finite and below `_MOST`."""
    wanted = str(kind).split(" | ")
    if value is None:
        return "None" in wanted
    if isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        return bool({"float", type(value).__name__} & set(wanted)) and abs(value) < _MOST
    return isinstance(value, str) and "str" in wanted


def state_now(status: Status, now_s: float | None = None) -> str:
    """Return `running`, `done`, `failed`, `interrupted` or `silent`, as far as this machine can know.

    The kernel knows whether a local process runs. A remote process has only its signs of life: after some missed
    heartbeats it is silent, because of its host, the network or the file system.
    """
    if status.state != "running":
        return status.state
    if status.boot_id == boot_id() and status.process.endswith(_namespace()):
        return "running" if alive(status.pid, status.process.partition("@")[0]) else "interrupted"
    if status.host == this_host() and status.boot_id != boot_id():
        return "interrupted"
    now_s = time.time() if now_s is None else now_s
    return "silent" if now_s - status.at_s > SILENT_S else "running"


def process_start(pid: int) -> str:
    """Return a process's start and PID namespace, as process IDs recur; raises FileNotFoundError."""
    return f"{started(pid)}{_namespace()}"


def _namespace() -> str:
    """Return the PID namespace: process IDs of another container mean nothing here."""
    return f"@{Path('/proc/self/ns/pid').stat().st_ino}"
