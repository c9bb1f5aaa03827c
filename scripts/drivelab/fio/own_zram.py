"""Make a zram device for a measurement, and remove it, also after a process that was killed.

Each device has a record in the run directory, which the process that made the device keeps locked. A record without a
lock is of a killed process. Its device is removed if it is still the recorded one: the kernel gives each device another
sequence number (Documentation/ABI/stable/sysfs-block, diskseq). It must also be as drivelab made it, and never have
been written to: another program may use it meanwhile.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from drivelab.core.errors import UserError
from drivelab.core.lock import alone, is_held
from drivelab.core.private import make_private, own_run_directory
from drivelab.drives import sysfs
from drivelab.drives.sysfs import read_text

CONTROL = Path("/sys/class/zram-control")
_PATIENCE_S = 5.0


@contextmanager
def own_zram(size_bytes: int, control: Path = CONTROL) -> Iterator[tuple[str | None, str]]:
    """Yield the kernel name of a new, empty zram device, or None and why it cannot be made; remove it at the end.

    First removes devices that killed processes left.
    """
    if os.geteuid() != 0 or not os.access(control / "hot_remove", os.W_OK):
        yield None, "no zram device can be made: this needs root and the kernel's zram"
        return
    try:
        name, record = _made(size_bytes, control)
    except (OSError, UserError) as error:
        yield None, f"no zram device can be made: {error.strerror if isinstance(error, OSError) else error}"
        return
    sequence = _sequence(name)
    try:
        try:
            (Path("/sys/block") / name / "disksize").write_text(str(size_bytes))
            _wait_for(Path("/dev") / name)
        except OSError as error:
            yield None, f"no zram device can be made: {error.strerror}"
            return
        yield name, ""
    finally:
        try:
            with _alone():  # the kernel may give the name to another process's device before the record is removed
                if _sequence(name) != sequence or _remove(control, name, _PATIENCE_S):
                    _path(name).unlink(missing_ok=True)
        finally:
            os.close(record)


def _made(size_bytes: int, control: Path) -> tuple[str, int]:
    """Make a device; return its name and the descriptor that locks its record."""
    with _alone():
        remove_left(control)
        name = f"zram{(control / 'hot_add').read_text().strip()}"
        try:
            return name, _recorded(name, size_bytes)
        except OSError:
            _remove(control, name, _PATIENCE_S)
            raise


def _recorded(name: str, size_bytes: int) -> int:
    """Write the record of a new device; return the descriptor that locks it.

    Raises BlockingIOError if a process still locks the record of an earlier device of this name.
    """
    record = os.open(_path(name), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(record, 0)
        os.write(record, json.dumps({"sequence": _sequence(name), "size_bytes": size_bytes}).encode())
    except OSError:
        os.close(record)
        raise
    return record


def remove_left(control: Path = CONTROL) -> list[str]:
    """Remove the devices that killed processes of drivelab left; return their names.

    A device that a program has open stays, and is tried again by the next call.
    """
    removed = []
    for path in sorted(_folder().glob("zram*.json")):
        name = path.stem
        if is_held(path):
            continue
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
            same = known["sequence"] is not None and known["sequence"] == _sequence(name)
            is_own = same and _is_unused(name, known["size_bytes"])
        except (OSError, ValueError, KeyError, TypeError):  # the process was killed while it wrote the record
            is_own = False
        if is_own and not _remove(control, name):
            continue
        removed += [name] if is_own else []
        path.unlink(missing_ok=True)
    return removed


def _alone() -> AbstractContextManager[None]:
    """Let only one process at a time make devices and look for those that are left."""
    return alone(_folder() / "lock")


def _folder() -> Path:
    return make_private(own_run_directory() / "null-targets")


def _path(name: str) -> Path:
    return _folder() / f"{name}.json"


def _sequence(name: str) -> str | None:
    """Return what tells a device from all others, also before the boot; None if it is gone, or before Linux 5.15."""
    number = read_text(Path("/sys/block") / name / "diskseq")
    return number and f"{read_text(Path('/proc/sys/kernel/random/boot_id'))} {number}"


def _is_unused(name: str, size_bytes: int) -> bool:
    """Return whether a device has drivelab's size or none yet, and no data was written to it."""
    fields = (read_text(Path("/sys/block") / name / "stat") or "").split()
    size = sysfs.capacity_bytes(name)
    return size in (0, size_bytes) and fields[4:5] == ["0"] and not any(Path("/sys/block", name, "holders").iterdir())


def _wait_for(node: Path) -> None:
    """Wait until the device node exists; raises FileNotFoundError after _PATIENCE_S."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while not os.access(node, os.R_OK):
        if time.monotonic() > deadline_s:
            raise FileNotFoundError(2, "its device node does not appear", str(node))
        time.sleep(0.01)


def _remove(control: Path, name: str, patience_s: float = 0.0) -> bool:
    """Remove the zram device; the kernel refuses while a program, such as udev, has it open."""
    deadline_s = time.monotonic() + patience_s
    while True:
        with suppress(OSError):
            (control / "hot_remove").write_text(name.removeprefix("zram"))
            return True
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(0.05)
