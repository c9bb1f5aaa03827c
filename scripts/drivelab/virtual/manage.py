"""Starts, finds, controls and stops virtual drives in real time: a server process, its mount and its loop device.

All of a drive lies in the run directory: NAME.json is its record, NAME.drive the mount point, NAME.log the server's
output, NAME.lock keeps two processes from starting or stopping it at once.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from drivelab.drives.lock import is_held
from drivelab.errors import UserError
from drivelab.parent import run
from drivelab.run_directory import run_directory
from drivelab.termination import deferred
from drivelab.virtual import daemon, fuse
from drivelab.virtual.faults import Fault
from drivelab.virtual.keeping import keep_drive
from drivelab.virtual.kept import discard, discard_part, kept_file
from drivelab.virtual.model import DriveModel
from drivelab.virtual.server import XATTR
from drivelab.virtual.support import possible as possible

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
_START_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class VirtualDrive:
    """Record of a drive that was started."""

    name: str
    serial: str
    device: str
    """Loop device."""
    capacity_bytes: int
    pid: int
    pid_start_ticks: int
    """Start of the process since boot (field 22 of /proc/PID/stat): tells it from a later one of the same number."""
    mount_point: str
    model: dict[str, Any]

    @property
    def alive(self) -> bool:
        return fuse.process_state(self.pid)[1] == self.pid_start_ticks


@dataclass(frozen=True)
class Status:
    """A drive as it is now."""

    name: str
    serial: str
    device: str
    pid: int
    alive: bool
    uptime_s: float | None
    counters: dict[str, int] | None
    """None if the server has died or a signal has stopped it."""


def start(name: str, model: DriveModel, *, kept: Path | None = None) -> VirtualDrive:
    """The running drive of that name; started if there is none, after cleaning up if its server has died.

    A drive that is started goes on from the state that `stop` kept in the folder `kept`; one that is damaged or of
    another model or format is none. Either way there is no kept state any more once the drive runs, which has left it.
    Raises UserError: it runs with another model, or cannot run here.
    """
    file = None if kept is None else kept_file(kept, name)
    with _locked(name):
        record = _read(name)
        if record is not None and record.alive and record.device in fuse.loop_devices(_path(name, "drive")):
            if record.model != model.to_mapping():
                raise UserError(
                    f"virtual drive '{name}' is running with another model than asked for, and a new one would lose "
                    f"its data; run drivelab virtual stop {name} first"
                )
            if file is not None:
                discard(file)
            return record
        _clean(name)
        if (reason := possible()) is not None:
            raise UserError(f"virtual drive '{name}' cannot be started: {reason}")
        try:
            with deferred():  # half a start cannot be cleared up: its server mounts later
                return _start(name, model, file)
        except BaseException:
            if file is None or _read(name) is None:  # one that went on from a kept state would lose it
                _clean(name)
            raise


def stop(name: str | None = None, *, force: bool = False, keep: Path | None = None) -> list[str]:
    """End one drive or all, and whatever a killed server left of them; returns what was removed, in words.

    Processes that wait for the drive get I/O errors. A name that nothing is known of is no error. Raises UserError,
    and touches nothing, when a file system on one of the drives is mounted or a stage is using the drive (it holds
    flock on the device); `force` stops them all the same.

    With `keep`, a folder, the state of each drive is kept there for `start`, without its faults: all writes that were
    acknowledged. Not that of a drive that hangs or has lost its server; an older state of it is removed. Raises
    UserError, and the drive goes on, when the folder cannot be written to, unless `force` is set.
    """
    names = _names() if name is None else [name]
    for one in names if not force else []:
        devices = fuse.loop_devices(_path(one, "drive"))
        if mounted := fuse.mounted_on(devices):
            raise UserError(f"virtual drive '{one}' is mounted on {mounted}; unmount it first, or use --force")
        if in_use(one):
            raise UserError(f"virtual drive '{one}' is being measured; wait for that to end, or use --force")
    removed: list[str] = []
    for one in names:
        with _locked(one), deferred():
            # Of a drive without a record, what is kept is the last state: nothing has run since.
            if keep is not None and _path(one, "json").exists():
                keep_drive(one, _answering(one), kept_file(keep, one), force=force)
            removed += _clean(one)
            if keep is not None:
                discard_part(kept_file(keep, one))
    return removed


def in_use(name: str) -> bool:
    """Whether a stage is using the drive: it holds flock on the device."""
    return any(is_held(Path(device)) for device in fuse.loop_devices(_path(name, "drive")))


def status() -> list[Status]:
    """All drives that were started and not stopped, by name."""
    found: list[Status] = []
    for record in _records():
        uptime_s = truth = None
        if alive := record.alive:
            state, ticks = fuse.process_state(record.pid)
            uptime_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
            with suppress(UserError):
                truth = counters(record.name) if state not in "Tt" else None
        found.append(Status(record.name, record.serial, record.device, record.pid, alive, uptime_s, truth))
    return found


def find_by_device(device: str) -> VirtualDrive | None:
    """The running virtual drive behind a path such as /dev/loop3, links followed; None for any other device."""
    real = os.path.realpath(device)
    for record in _records():
        if record.device == real and record.alive and real in fuse.loop_devices(Path(record.mount_point)):
            return record
    return None


def counters(name: str) -> dict[str, int]:
    """Ground truth of a running drive: host_write_bytes, host_read_bytes, nand_write_bytes, erases, …"""
    value: dict[str, int] = json.loads(_control(name, "counters"))
    return value


def purge(name: str, *, counters_too: bool = False) -> None:
    """Bring a running drive into the state of one that was never written; `counters_too` and faults: of a new one."""
    fuse.drop_page_cache(_running(name).device)  # or buffered readers would go on seeing the old data
    _control(name, "reset" if counters_too else "purge", b"1")


def set_fault(name: str, *faults: Fault) -> None:
    """Disturb the I/O of a running drive from now on; replaces the faults that were set."""
    _control(name, "faults", json.dumps([asdict(fault) for fault in faults]).encode())


def clear_faults(name: str) -> int:
    """End all faults; requests that hung go on. Returns how many those were."""
    return int(_control(name, "release"))


def _running(name: str) -> VirtualDrive:
    record = _read(name)
    if record is None or not record.alive:
        state = "is not running" if record is None else "has lost its server"
        raise UserError(f"virtual drive '{name}' {state}; run drivelab virtual start {name}")
    return record


def _control(name: str, attribute: str, value: bytes | None = None) -> bytes:
    """Read an attribute of the drive's file, or set it to `value`."""
    file = _running(name).mount_point
    try:
        if value is None:
            return os.getxattr(file, XATTR + attribute)
        os.setxattr(file, XATTR + attribute, value)
        return b""
    except OSError as error:
        raise UserError(
            f"virtual drive '{name}' does not answer ({error.strerror}); stop it with drivelab virtual stop {name}"
        ) from None


def _start(name: str, model: DriveModel, file: Path | None) -> VirtualDrive:
    mount_point, log = _path(name, "drive"), _path(name, "log")
    mount_point.touch()
    log.unlink(missing_ok=True)
    command = [sys.executable, "-S", "-P", "-m", "drivelab.virtual.server", name, str(mount_point), str(log)]
    command += [] if file is None else [str(file)]
    try:
        done = run(
            command, input=json.dumps(model.to_mapping()), check=True, start_new_session=True,
            env={"PYTHONPATH": str(Path(__file__).resolve().parents[2])}, timeout=_START_TIMEOUT_S,
        )  # fmt: skip
        device = fuse.attach_loop(mount_point, model.logical_block_bytes)
    except (subprocess.SubprocessError, OSError) as error:
        words = log.read_text().strip() if log.exists() else "nothing"
        raise UserError(f"virtual drive '{name}' did not start ({error}); its server says: {words}") from None
    pid = int(done.stdout)
    ticks = fuse.process_state(pid)[1]
    known = model.serial, device, model.capacity_bytes
    record = VirtualDrive(name, *known, pid, ticks, str(mount_point), model.to_mapping())
    part = _path(name, "part")
    part.write_text(json.dumps(asdict(record), indent=1))
    if file is not None:
        discard(file)  # before there is a record: what runs and what is kept must never both count
    part.rename(_path(name, "json"))
    return record


def _answering(name: str) -> str | None:
    """Mount point of the drive, unless its server has died or a signal has stopped it."""
    record = _read(name)
    answers = record is not None and record.alive and fuse.process_state(record.pid)[0] not in "Tt"
    return record.mount_point if record is not None and answers else None


def _clean(name: str) -> list[str]:
    """Remove process, mount, loop device and files of a drive, whatever of them there is."""
    removed: list[str] = []
    mount_point, record = _path(name, "drive"), _read(name)
    if record is not None and record.alive:
        daemon.kill(record.pid, lambda: record.alive, _STOP_TIMEOUT_S)
        removed.append(f"server of '{name}' (process {record.pid})")
    connections = [number for path, number in fuse.mounts() if path == mount_point]
    for number in connections:
        fuse.abort(number)  # also ends a server that no record tells of
    for device in fuse.loop_devices(mount_point):
        detached = fuse.detach_loop(device, mount_point, _STOP_TIMEOUT_S)
        removed.append(f"loop device {device}" + ("" if detached else " (as soon as its last user closes it)"))
    for _ in connections:
        fuse.unmount(mount_point)
        removed.append(f"mount {mount_point}")
    with suppress(FileNotFoundError):
        if words := _path(name, "log").read_text().strip():
            removed.append(f"log of '{name}', which ended with: {words.splitlines()[-1]}")
    for kind in ("json", "part", "drive", "log"):
        _path(name, kind).unlink(missing_ok=True)
    return removed


def _path(name: str, kind: str) -> Path:
    if not _NAME.fullmatch(name):
        raise UserError(f"'{name}' is no name of a virtual drive; use at most 41 small letters, digits and hyphens")
    return run_directory() / "virtual" / f"{name}.{kind}"


def _names() -> list[str]:
    """Names of which there is a record or a file in the run directory: those of a killed start too."""
    return sorted({path.stem for kind in ("json", "drive") for path in _path("x", kind).parent.glob(f"*.{kind}")})


def _records() -> list[VirtualDrive]:
    return [record for record in map(_read, _names()) if record is not None]


def _read(name: str) -> VirtualDrive | None:
    try:
        return VirtualDrive(**json.loads(_path(name, "json").read_text()))
    except (FileNotFoundError, TypeError, ValueError):  # none, or another version's: `_clean` asks the kernel instead
        return None


@contextmanager
def _locked(name: str) -> Iterator[None]:
    """Only one process starts or stops a drive at a time; the lock goes with the process that holds it."""
    path = _path(name, "lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UserError(f"virtual drive '{name}': {path} cannot be opened ({error.strerror}); run as root") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
