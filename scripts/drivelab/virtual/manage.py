"""Starts, finds, controls and stops virtual drives in real time: a server process, its mount and its loop device.

All of a drive lies in the run directory: NAME.json is its record, NAME.drive the mount point, NAME.log the server's
output, NAME.lock keeps two processes from starting or stopping it at once.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from drivelab.drives.lock import is_held
from drivelab.errors import UserError
from drivelab.virtual import fuse
from drivelab.virtual.model import DriveModel
from drivelab.virtual.server import XATTR, Fault

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


def possible() -> str | None:
    """None if virtual drives can run in real time here, else the reason; tried with a real mount and loop device."""
    if os.geteuid() != 0:
        return "virtual drives in real time need root"
    if shutil.which("losetup") is None:
        return "virtual drives in real time need the program losetup (package mount)"
    try:
        with tempfile.NamedTemporaryFile() as file:
            descriptor = fuse.mount(Path(file.name), "drivelab:probe")
            os.close(descriptor)
            fuse.unmount(Path(file.name))
    except OSError as error:
        return f"virtual drives in real time need FUSE, which cannot be mounted here ({error.strerror})"
    try:
        os.close(os.open(fuse.free_loop_device(), os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"virtual drives in real time need a loop device, and there is none here ({error.strerror})"
    return None


def start(name: str, model: DriveModel) -> VirtualDrive:
    """The running drive of that name; started if there is none, after cleaning up if its server has died.

    Raises UserError: it runs with another model, or cannot run here.
    """
    with _locked(name):
        record = _read(name)
        if record is not None and record.alive and record.device in fuse.loop_devices(_path(name, "drive")):
            if record.model != model.to_mapping():
                raise UserError(
                    f"virtual drive '{name}' is running with another model than asked for, and a new one would lose "
                    f"its data; run drivelab virtual stop {name} first"
                )
            return record
        _clean(name)
        if (reason := possible()) is not None:
            raise UserError(f"virtual drive '{name}' cannot be started: {reason}")
        try:
            return _start(name, model)
        except BaseException:
            _clean(name)
            raise


def stop(name: str | None = None, *, force: bool = False) -> list[str]:
    """End one drive or all, and whatever a killed server left of them; returns what was removed, in words.

    Processes that wait for the drive get I/O errors. A name that nothing is known of is no error. Raises UserError,
    and touches nothing, when a file system on one of the drives is mounted or a stage is using the drive (it holds
    flock on the device); `force` stops them all the same.
    """
    names = _names() if name is None else [name]
    for one in names if not force else []:
        devices = fuse.loop_devices(_path(one, "drive"))
        if mounted := fuse.mounted_on(devices):
            raise UserError(f"virtual drive '{one}' is mounted on {mounted}; unmount it first, or use --force")
        if any(is_held(Path(device)) for device in devices):
            raise UserError(f"virtual drive '{one}' is being measured; wait for that to end, or use --force")
    removed: list[str] = []
    for one in names:
        with _locked(one):
            removed += _clean(one)
    return removed


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
    real = str(Path(device).resolve())
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
    except OSError as error:
        raise UserError(
            f"virtual drive '{name}' does not answer ({error.strerror}); stop it with drivelab virtual stop {name}"
        ) from None
    return b""


def _start(name: str, model: DriveModel) -> VirtualDrive:
    mount_point, log = _path(name, "drive"), _path(name, "log")
    mount_point.touch()
    log.unlink(missing_ok=True)
    command = [sys.executable, "-S", "-P", "-m", "drivelab.virtual.server", name, str(mount_point), str(log)]
    try:
        done = subprocess.run(
            command, input=json.dumps(model.to_mapping()), capture_output=True, text=True, check=True,
            env={"PYTHONPATH": str(Path(__file__).resolve().parents[2])}, timeout=_START_TIMEOUT_S,
        )  # fmt: skip
        device = fuse.attach_loop(mount_point)
    except (subprocess.SubprocessError, OSError) as error:
        words = log.read_text().strip() if log.exists() else "nothing"
        raise UserError(f"virtual drive '{name}' did not start ({error}); its server says: {words}") from None
    pid = int(done.stdout)
    ticks = fuse.process_state(pid)[1]
    record = VirtualDrive(
        name, model.serial, device, model.capacity_bytes, pid, ticks, str(mount_point), model.to_mapping()
    )
    part = _path(name, "part")
    part.write_text(json.dumps(asdict(record), indent=1))
    part.rename(_path(name, "json"))
    return record


def _clean(name: str) -> list[str]:
    """Remove process, mount, loop device and files of a drive, whatever of them there is."""
    removed: list[str] = []
    mount_point, record = _path(name, "drive"), _read(name)
    if record is not None and record.alive:
        _kill(record)
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


def _kill(record: VirtualDrive) -> None:
    """SIGKILL, which a stopped process obeys too; the server has nothing to save."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(record.pid)
        try:
            if record.alive:  # still the same now that the descriptor holds on to it
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                select.select([descriptor], [], [], _STOP_TIMEOUT_S)
        finally:
            os.close(descriptor)


def _path(name: str, kind: str) -> Path:
    if not _NAME.fullmatch(name):
        raise UserError(f"'{name}' is no name of a virtual drive; use at most 41 small letters, digits and hyphens")
    return Path(os.environ.get("DRIVELAB_RUN_DIR", "/run/drivelab")).resolve() / "virtual" / f"{name}.{kind}"


def _names() -> list[str]:
    """Names of which there is a record or a file in the run directory: those of a killed start too."""
    directory = _path("x", "json").parent
    return sorted({path.stem for kind in ("json", "drive") for path in directory.glob(f"*.{kind}")})


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
