"""Start, find, control and stop virtual drives in real time: a server process, its mount and its loop device.

The files of a drive are in the run directory: NAME.json is its record, NAME.drive the mount point, NAME.log the
server's output. NAME.borrowed says that the drive stops after its last user (`borrowed`). NAME.lock and NAME.users.lock
are locks.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from drivelab.core import lock
from drivelab.core.errors import UserError
from drivelab.core.private import make_private, run_directory
from drivelab.core.programs import process_state, python, run
from drivelab.core.termination import deferred
from drivelab.virtual import daemon, fuse
from drivelab.virtual.daemon import possible as possible
from drivelab.virtual.faults import Fault
from drivelab.virtual.kept_state import discard, discard_part, keep_drive, kept_file
from drivelab.virtual.model import DriveModel
from drivelab.virtual.server import XATTR

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
_START_TIMEOUT_S = 120.0
_STOP_TIMEOUT_S = 5.0


def path_of(name: str, kind: str) -> Path:
    """Return the path of a drive's file NAME.KIND in the run directory; raises UserError for an invalid name."""
    if not _NAME.fullmatch(name):
        raise UserError(
            f"'{name}' is not a valid name of a virtual drive; use at most 41 lower-case letters, digits and hyphens"
        )
    return run_directory() / "virtual" / f"{name}.{kind}"


def starting_or_stopping(name: str) -> AbstractContextManager[None]:
    """Let only one process at a time start or stop a drive; the lock ends with the process that holds it."""
    return _locked(name, "lock", shared=False)


def using(name: str) -> AbstractContextManager[None]:
    """Keep other processes from stopping the drive within the context; any number of processes can use it."""
    return _locked(name, "users.lock", shared=True)


@contextmanager
def _locked(name: str, kind: str, *, shared: bool) -> Iterator[None]:
    path = path_of(name, kind)
    with ExitStack() as stack:
        try:
            make_private(path.parent)
            stack.enter_context(lock.alone(path, 0o644, shared=shared))
        except OSError as error:
            raise UserError(f"virtual drive '{name}': cannot open {path} ({error.strerror}); run as root") from None
        yield


def in_use(name: str) -> bool:
    """Return whether a command uses the drive, or a stage, which holds flock on its device.

    udev also locks the device while it reads it, so a lock that ends within `lock.PASSING_S` does not count.
    """
    devices = map(Path, fuse.loop_devices(path_of(name, "drive")))
    return lock.is_held(path_of(name, "users.lock")) or any(lock.is_held(path, lock.PASSING_S) for path in devices)


@dataclass(frozen=True)
class VirtualDrive:
    """Record of a started drive."""

    name: str
    serial: str
    device: str
    """Loop device."""
    capacity_bytes: int
    pid: int
    pid_start_ticks: int
    """Start of the process since boot (field 22 of /proc/PID/stat), because a later process may reuse its pid."""
    mount_point: str
    model: dict[str, Any]

    @property
    def alive(self) -> bool:
        return process_state(self.pid)[1] == self.pid_start_ticks


@dataclass(frozen=True)
class Status:
    """The current state of a drive."""

    name: str
    serial: str
    device: str
    pid: int
    alive: bool
    uptime_s: float | None
    counters: dict[str, int] | None
    """None if the server has died or a signal has stopped it."""


def start(name: str, model: DriveModel, *, kept: Path | None = None) -> VirtualDrive:
    """Return the running drive with this name; start it if needed, after cleaning up a dead server.

    It then runs until it is stopped, also if a user of `borrowed` started it.

    A started drive resumes from the state that `stop` saved in the folder `kept`, unless that state is damaged or of
    another model or format. The saved state is removed once the drive runs, because the drive then changes.
    Raises UserError if the drive runs with another model, or cannot run here.
    """
    return _started(name, model, None if kept is None else kept_file(kept, name), borrowed=False)


@contextmanager
def borrowed(name: str, model: DriveModel) -> Iterator[VirtualDrive]:
    """Yield the running drive; start it if needed, and then stop it again after the last of its users.

    Other processes cannot stop the drive within the context, unless they force it. Raises UserError as `start` does.
    """
    try:
        with using(name):
            yield _started(name, model, None, borrowed=True)
    finally:
        with starting_or_stopping(name), deferred():
            if path_of(name, "borrowed").exists() and _busy(name) is None:
                _clean(name)


def _started(name: str, model: DriveModel, file: Path | None, *, borrowed: bool) -> VirtualDrive:
    with starting_or_stopping(name):
        record = _read(name)
        if record is not None and record.alive and record.device in fuse.loop_devices(path_of(name, "drive")):
            if record.model != model.to_mapping():
                raise UserError(
                    f"virtual drive '{name}' is running with another model than requested, and a restart would lose "
                    f"its data; run drivelab virtual stop {name} first"
                )
            if file is not None:
                discard(file)
            if not borrowed:
                path_of(name, "borrowed").unlink(missing_ok=True)
            return record
        _clean(name)
        if (reason := possible()) is not None:
            raise UserError(f"virtual drive '{name}' cannot be started: {reason}")
        if borrowed:
            path_of(name, "borrowed").touch()
        try:
            with deferred():  # an interrupted start cannot be cleaned up, because its server mounts later
                return _start(name, model, file)
        except BaseException:
            if file is None or _read(name) is None:  # a drive resumed from a saved state would lose that state
                _clean(name)
            raise


def stop(name: str | None = None, *, force: bool = False, keep: Path | None = None) -> list[str]:
    """Stop one drive or all, and clean up after killed servers; return descriptions of what was removed.

    Processes that wait for the drive get I/O errors. An unknown name is not an error. Raises UserError, and changes
    nothing, if a file system on a drive is mounted, or if a command is using a drive; `force` stops the drives anyway.

    With a folder `keep`, the state of each drive is saved there for `start`: all acknowledged writes, without the
    faults. The state of a drive that hangs or has lost its server is not saved, and an older saved state is removed.
    Raises UserError, and the drive keeps running, if the folder cannot be written to, unless `force` is set.
    """
    drives = _names() if name is None else [name]
    removed: list[str] = []
    with ExitStack() as locks:
        for drive in drives:
            locks.enter_context(starting_or_stopping(drive))
            if not force and (reason := _busy(drive)) is not None:
                raise UserError(f"virtual drive '{drive}' {reason}, or use --force")
        locks.enter_context(deferred())
        for drive in drives:
            # Without a record, the drive has not run since its state was saved, so the saved state is current.
            if keep is not None and path_of(drive, "json").exists():
                keep_drive(drive, _responsive_mount_point(drive), kept_file(keep, drive), force=force)
            removed += _clean(drive)
            if keep is not None:
                discard_part(kept_file(keep, drive))
    return removed


def _busy(name: str) -> str | None:
    """Return why a drive must not be stopped, and what to do, or None."""
    if mounted := fuse.mounted_on(fuse.loop_devices(path_of(name, "drive"))):
        return f"is mounted on {mounted}; unmount it first"
    return "is in use by another command; wait until that ends" if in_use(name) else None


def status() -> list[Status]:
    """Return all drives that were started and not stopped, by name."""
    statuses: list[Status] = []
    for record in _records():
        uptime_s = values = None
        if alive := record.alive:
            state, ticks = process_state(record.pid)
            uptime_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
            with suppress(UserError):
                values = counters(record.name) if state not in "Tt" else None
        statuses.append(Status(record.name, record.serial, record.device, record.pid, alive, uptime_s, values))
    return statuses


def find_by_device(device: str) -> VirtualDrive | None:
    """Return the running virtual drive at a path such as /dev/loop3, following links; None for other devices."""
    real = os.path.realpath(device)
    for record in _records():
        if record.device == real and record.alive and real in fuse.loop_devices(Path(record.mount_point)):
            return record
    return None


def counters(name: str) -> dict[str, int]:
    """Return the true counters of a running drive: host_write_bytes, host_read_bytes, nand_write_bytes, erases, …"""
    value: dict[str, int] = json.loads(_control(name, "counters"))
    return value


def purge(name: str, *, counters_too: bool = False) -> None:
    """Bring a running drive into the never-written state; with `counters_too` also reset counters and faults."""
    fuse.drop_page_cache(_running(name).device)  # otherwise buffered readers would still see the old data
    _control(name, "reset" if counters_too else "purge", b"1")


def set_fault(name: str, *faults: Fault) -> None:
    """Disturb the I/O of a running drive from now on; replaces the current faults."""
    _control(name, "faults", json.dumps([asdict(fault) for fault in faults]).encode())


def clear_faults(name: str) -> int:
    """Clear all faults; hanging requests continue. Return the number of hanging requests."""
    return int(_control(name, "release"))


def _running(name: str) -> VirtualDrive:
    record = _read(name)
    if record is None or not record.alive:
        state = "is not running" if record is None else "has lost its server"
        raise UserError(f"virtual drive '{name}' {state}; run drivelab virtual start {name}")
    return record


def _control(name: str, attribute: str, value: bytes | None = None) -> bytes:
    """Read an attribute of the drive's file, or set the attribute to `value`."""
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
    mount_point, log = path_of(name, "drive"), path_of(name, "log")
    mount_point.touch()
    log.unlink(missing_ok=True)
    command = python("-S", "-m", "drivelab.virtual.server", name, str(mount_point), str(log))
    command += [] if file is None else [str(file)]
    try:
        done = run(
            command, input=json.dumps(model.to_mapping()), check=True, start_new_session=True,
            env={"PYTHONPATH": str(Path(__file__).resolve().parents[2])}, timeout=_START_TIMEOUT_S,
        )  # fmt: skip
        device = fuse.attach_loop(mount_point, model.logical_block_bytes)
    except (subprocess.SubprocessError, OSError) as error:
        output = log.read_text().strip() if log.exists() else "nothing"
        raise UserError(f"virtual drive '{name}' did not start ({error}); its server printed: {output}") from None
    pid = int(done.stdout)
    ticks = process_state(pid)[1]
    identity = model.serial, device, model.capacity_bytes
    record = VirtualDrive(name, *identity, pid, ticks, str(mount_point), model.to_mapping())
    part = path_of(name, "part")
    part.write_text(json.dumps(asdict(record), indent=1))
    if file is not None:
        discard(file)  # before the record exists: a running drive and a saved state must never both be valid
    part.rename(path_of(name, "json"))
    return record


def _responsive_mount_point(name: str) -> str | None:
    """Return the drive's mount point, or None if its server has died or a signal has stopped it."""
    record = _read(name)
    responds = record is not None and record.alive and process_state(record.pid)[0] not in "Tt"
    return record.mount_point if record is not None and responds else None


def _clean(name: str) -> list[str]:
    """Remove process, mount, loop device and files of a drive, as far as they exist."""
    removed: list[str] = []
    mount_point, record = path_of(name, "drive"), _read(name)
    if record is not None and record.alive:
        daemon.kill(record.pid, lambda: record.alive, _STOP_TIMEOUT_S)
        removed.append(f"server of '{name}' (process {record.pid})")
    connections = [number for path, number in fuse.mounts() if path == mount_point]
    for number in connections:
        fuse.abort(number)  # also ends a server without a record
    for device in fuse.loop_devices(mount_point):
        detached = fuse.detach_loop(device, mount_point, _STOP_TIMEOUT_S)
        removed.append(f"loop device {device}" + ("" if detached else " (as soon as its last user closes it)"))
    for _ in connections:
        fuse.unmount(mount_point)
        removed.append(f"mount {mount_point}")
    with suppress(FileNotFoundError):
        if log := path_of(name, "log").read_text().strip():
            removed.append(f"log of '{name}', which ended with: {log.splitlines()[-1]}")
    for kind in ("json", "part", "drive", "log", "borrowed"):
        path_of(name, kind).unlink(missing_ok=True)
    return removed


def _names() -> list[str]:
    """Return the names with a record or a mount point in the run directory, also those of a killed start."""
    return sorted({path.stem for kind in ("json", "drive") for path in path_of("x", kind).parent.glob(f"*.{kind}")})


def _records() -> list[VirtualDrive]:
    return [record for record in map(_read, _names()) if record is not None]


def _read(name: str) -> VirtualDrive | None:
    try:
        return VirtualDrive(**json.loads(path_of(name, "json").read_text()))
    except (FileNotFoundError, TypeError, ValueError):  # no record, or another version's: `_clean` asks the kernel
        return None
