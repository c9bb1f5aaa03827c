"""What a running stage is doing, in a small file that anybody may read: one per drive, and one per bad end."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from drivelab.config.study import PARTS
from drivelab.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.recording.writer import Recording, read_object, write_json
from drivelab.stages.platforms import refuse_elsewhere, this_host
from drivelab.trace.capturing.processes import alive, boot_id, started

_RECORDING = re.compile(r"[A-Za-z0-9@._-]{1,200}(/[A-Za-z0-9@._-]{1,200}){2}")
_MOST = 1e11
"""Of a number in a status: as a time the year 5138, later than which the C library's calendar may not go."""
HEARTBEAT_S = 10.0
"""A stage shows that it is alive at least so often, whatever it is doing."""
_TRIES = 2
"""A measurement that failed so often no longer keeps its drive from others."""
_MISSED = 3
"""Heartbeats after which a stage on another machine is called silent: its clock and the file system's may be late."""


@dataclass(frozen=True)
class Status:
    """What a stage said last."""

    recording: str
    stage: str
    text: str
    """For people, for example `round 4 of at most 25, RND 4KiB 0/100 T2Q8, 2,310 IOPS`."""
    fraction: float
    """Share of the stage that is done, as far as one can know; 1 at the end."""
    pid: int
    at_s: float
    """Last sign of life, time of day, seconds since 1970."""
    state: str = "running"
    """`running`, `done`, `failed` or `interrupted`, as the stage itself said; what became of it: `state_now`."""
    reason: str | None = None
    """Why it failed, in a sentence."""
    since_s: float = 0.0
    """When the stage began, seconds since 1970."""
    host: str = ""
    boot_id: str = ""
    """Of the host's kernel: with another one, the process is gone."""
    process: str = ""
    """Start of the process in ticks since boot, as numbers of processes come again, and its PID namespace."""
    round: int | None = None
    """Of a loop, from 1; cold rounds count for themselves."""
    rounds_at_most: int | None = None
    iops: float | None = None
    """Of the last cell that is finished."""
    failures: int = 0
    """How often a stage of the recording has failed since the drive was last used for another one."""

    @property
    def drive(self) -> str:
        """As in `Plan.drive`."""
        return self.recording.partition("/")[0]


class Progress:
    """Writes `status/DRIVE.json` in the results folder; a reader always finds a whole file.

    From entering to leaving it shows that the process is alive. When the drive goes on to another recording, what
    failed or was killed is kept in `status/RECORDING.json`, with its reason, until that recording is gone on with.
    """

    def __init__(self, plan: Plan, stage: str) -> None:
        self._plan = plan
        self._path = status_path(plan)
        now_s = time.time()
        self._status = Status(plan.recording, stage, "begins", 0.0, os.getpid(), now_s, since_s=now_s)
        self._lock, self._ending = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Progress:
        """Raises UserError where the plan is for another host: the status there is not to be lost; and where the drive
        is to be left to a measurement that was killed, or that failed and was not tried again."""
        refuse_elsewhere(self._plan)
        before = _status_in(status_path(self._plan))
        if before is not None and before.recording != self._plan.recording:
            _refuse_to_lose(self._plan, before)
            _put_aside(self._plan, before)
        elif before is not None:
            self.note(failures=before.failures)
        _aside(self._plan, self._plan.recording).unlink(missing_ok=True)
        self._put(host=this_host(), boot_id=boot_id(), process=_process(os.getpid()))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()
        if error is None:
            self._put(state="done", text="done", fraction=1.0)
            return
        with suppress(OSError):  # on a full disk the error that is under way counts
            if isinstance(error, Exception):
                reason = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
                self._put(state="failed", reason=reason, failures=self._status.failures + 1)
            else:
                self._put(state="interrupted")

    def begin(self, stage: str) -> None:
        """Another stage within the same process."""
        self._put(stage=stage, since_s=time.time(), text="begins", fraction=0.0, round=None, rounds_at_most=None)

    def say(self, text: str, fraction: float) -> None:
        """What is being done; see `Status`."""
        self._put(text=text, fraction=round(min(fraction, 1.0), 4))

    def note(self, **facts: Any) -> None:
        """Take down `round`, `rounds_at_most` or `iops`, told with what is said next."""
        with self._lock:
            self._status = replace(self._status, **facts)

    def _beat(self) -> None:
        while not self._ending.wait(HEARTBEAT_S):
            with suppress(OSError):
                self._put()

    def _put(self, **changes: Any) -> None:
        with self._lock:
            self._status = replace(self._status, at_s=time.time(), **changes)
            write_json(self._path, asdict(self._status))


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
    if "simultaneous" in other.plan.subject or other.measured:  # never resumed; needs the drive no more
        return
    if any(line["event"] in ("fill", "measure") for line in other.journal()):
        raise UserError(
            f"drive '{plan.drive}' is reserved for {before.recording}, which {_ENDS[state_now(before)]}. Another "
            "measurement would purge the drive, and that one would have to restart. Run again: drivelab continues it "
            f"first. To give it up, remove {other.part}."
        )


_ENDS = {"interrupted": "was interrupted", "failed": "failed"}


def keeps_drive(status: Status) -> bool:
    """Whether a measurement keeps its drive from others: it was killed, or it failed and was not tried again since."""
    state = state_now(status)
    return state == "interrupted" or (state == "failed" and status.failures < _TRIES)


def _put_aside(plan: Plan, before: Status) -> None:
    """Keep what the stage before said, unless that came to a good end: its file is about to be overwritten."""
    state = "failed" if before.state == "failed" else "interrupted"
    if state_now(before) in ("failed", "interrupted", "silent"):
        write_json(_aside(plan, before.recording), asdict(replace(before, state=state)))


def _aside(plan: Plan, recording: str) -> Path:
    return Path(plan.context["results"]) / "status" / f"{recording}.json"


def status_path(plan: Plan) -> Path:
    """Where the status of the drive of a plan is."""
    return Path(plan.context["results"]) / "status" / f"{plan.drive}.json"


def read_status(results: Path) -> list[Status]:
    """The statuses in a results folder, those of a fleet's drives included; files that hold none are left out."""
    return sorted(_read(results), key=lambda status: status.drive)


def read_aside(results: Path, recording: str) -> Status | None:
    """What a stage of a recording said when it failed, or before it was killed; None where nothing was put aside.

    `results` is, of a fleet, the drive's own.
    """
    return _status_in(results / "status" / f"{recording}.json")


def _read(results: Path) -> Iterator[Status]:
    for pattern in ("status/*.json", f"{PARTS}/*/status/*.json"):
        for path in results.glob(pattern):
            if (status := _status_in(path)) is not None:
                yield status


def _status_in(path: Path) -> Status | None:
    return status_of(read_object(path))


def status_of(body: Mapping[str, Any]) -> Status | None:
    """Return the status that a file has, or None where a field lacks or is of another kind: anybody may write it."""
    values = {one.name: body[one.name] for one in fields(Status) if one.name in body}
    if not all(_is_of_kind(one.type, values[one.name]) for one in fields(Status) if one.name in values):
        return None
    try:
        status = Status(**values)
    except TypeError:
        return None
    return status if _RECORDING.fullmatch(status.recording) and ".." not in status.recording.split("/") else None


def _is_of_kind(kind: Any, value: Any) -> bool:
    """Whether a value is of a field's type, as written in `Status`; numbers are finite and times are of a calendar."""
    wanted = str(kind).split(" | ")
    if value is None:
        return "None" in wanted
    if isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        return bool({"float", type(value).__name__} & set(wanted)) and abs(value) < _MOST
    return isinstance(value, str) and "str" in wanted


def state_now(status: Status, now_s: float | None = None) -> str:
    """`running`, `done`, `failed`, `interrupted` or `silent`, as far as this machine can tell.

    Of a process of this machine the kernel knows whether it runs. Of one elsewhere there are only its signs of life:
    without any for some heartbeats it is silent, which may be its host, the network or the file system.
    """
    if status.state != "running":
        return status.state
    if status.boot_id == boot_id() and status.process.endswith(_namespace()):
        return "running" if alive(status.pid, status.process.partition("@")[0]) else "interrupted"
    if status.host == this_host() and status.boot_id != boot_id():
        return "interrupted"
    now_s = time.time() if now_s is None else now_s
    return "silent" if now_s - status.at_s > _MISSED * HEARTBEAT_S else "running"


def _process(pid: int) -> str:
    return f"{started(pid)}{_namespace()}"


def _namespace() -> str:
    """PID namespace: numbers of processes of another container mean nothing here."""
    return f"@{Path('/proc/self/ns/pid').stat().st_ino}"
