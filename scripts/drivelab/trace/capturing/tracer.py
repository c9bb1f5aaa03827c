"""The kernel's one tracer: whether it can be had, the lock on it, and its state, journalled and put back.

What is changed is written to a journal first. Whoever gets the lock while there is a journal restores from it, since
its writer must have been killed. Where tracefs is not mounted, drivelab mounts it and unmounts it in the same way.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from pathlib import Path
from typing import Any, TextIO

from drivelab import parent
from drivelab.drives.sysfs import read_text
from drivelab.errors import UserError
from drivelab.trace.capturing.processes import boot_id

TRACING = Path("/sys/kernel/tracing")
RUN = Path("/run/drivelab")
JOURNAL = "ftrace.json"
MOUNT_JOURNAL = "tracefs.json"
"""There while drivelab has mounted tracefs."""
OPTIONS = {"markers": "0", "overwrite": "0"}
"""Messages would take the room of events. Without `overwrite` a full ring drops new events and counts them, where it
would else lose old ones."""
_MOUNT = "mount -t tracefs -o nosuid,nodev,noexec tracefs"
SAVED_PROCESSES = 16384
"""Names that the kernel keeps; 128 are its default, a compilation has thousands of processes."""


def possible(tracing: Path = TRACING) -> str | None:
    """Why the `blk` tracer cannot be used by this process; None if it can."""
    if os.geteuid() != 0:
        return "tracing needs root"
    try:
        tracers = (tracing / "available_tracers").read_text().split()
    except OSError:
        command = ["unshare", "--mount", "sh", "-c", f'{_MOUNT} "$1" && cat "$1/available_tracers"', "sh", str(tracing)]
        tried = parent.run(command)
        if tried.returncode:
            return f"tracefs cannot be mounted at {tracing} ({_last_line(tried.stderr)})"
        tracers = tried.stdout.split()
    return None if "blk" in tracers else "this kernel has no blk tracer (CONFIG_BLK_DEV_IO_TRACE)"


def mount(run: Path = RUN, tracing: Path = TRACING) -> None:
    """Mount tracefs unless it is mounted; the caller holds the lock. Raises UserError when the kernel refuses."""
    if (tracing / "available_tracers").exists():
        return
    _write_journal(run / MOUNT_JOURNAL, {"boot_id": boot_id(), "tracing": str(tracing)})
    mounted = parent.run([*_MOUNT.split(), str(tracing)])
    if mounted.returncode:
        (run / MOUNT_JOURNAL).unlink()
        raise UserError(
            f"tracefs cannot be mounted at {tracing} ({_last_line(mounted.stderr)}). Tracing needs it. Mount it, or "
            "run as root of the host."
        )


def unmount(run: Path = RUN) -> None:
    """Unmount tracefs if `mount` mounted it; the caller holds the lock.

    While another program uses it, it stays mounted, and so does the journal: the next capture tries again.
    """
    journal = run / MOUNT_JOURNAL
    try:
        body = json.loads(journal.read_text())
    except FileNotFoundError:
        return
    if body["boot_id"] == boot_id() and os.path.ismount(body["tracing"]):
        parent.run(["umount", body["tracing"]])
        if os.path.ismount(body["tracing"]):
            return
    journal.unlink()


def refuse_foreign(device_trace: Path, tracing: Path = TRACING, *, own_ring: bool = True) -> None:
    """Raise UserError when someone else traces; without `own_ring` only for what would take events from blktrace.

    `device_trace` is /sys/class/block/NAME/trace.
    """
    if text(tracing / "current_tracer") not in ("nop", "") and (own_ring or text(tracing / "current_tracer") == "blk"):
        raise UserError(
            f"the kernel's tracer '{text(tracing / 'current_tracer')}' is in use by someone else; end that trace "
            f"(echo nop > {tracing}/current_tracer) and try again"
        )
    if own_ring and (events := text(tracing / "set_event").split()):
        raise UserError(f"kernel trace events are in use by someone else ({events[0]}, …); end that trace first")
    if text(device_trace / "enable") not in ("0", ""):
        raise UserError(
            f"{device_trace.parent.name} is being traced by someone else; end that trace first "
            f"(blktrace -k /dev/{device_trace.parent.name}, or echo 0 > {device_trace}/enable)"
        )


def state(tracing: Path = TRACING) -> dict[str, str]:
    """What to write to get back to the present state, by file relative to the tracing directory, in that order."""
    names = ["current_tracer", *(f"options/{name}" for name in OPTIONS), "trace_clock", "tracing_cpumask"]
    names += [f"per_cpu/{cpu.name}/buffer_size_kb" for cpu in cpus(tracing)]
    return {name: _value(tracing / name) for name in [*names, "saved_cmdlines_size", "tracing_on"]}


def recover(run: Path = RUN, tracing: Path = TRACING) -> bool:
    """Put the tracer back to how a killed capture found it; the caller holds the lock. True if there was anything.

    A tracer that someone else has chosen since is left to them. Unmounts tracefs if drivelab mounted it. Raises
    UserError, the journal kept, when the kernel refuses because someone reads the ring.
    """
    journal = run / JOURNAL
    try:
        body = json.loads(journal.read_text())
    except FileNotFoundError:
        unmount(run)
        return False
    if body["boot_id"] == boot_id():
        mount(run, tracing)
        _restore(tracing, Path(body["device_trace"]) / "enable", body["state"])
    journal.unlink()
    unmount(run)
    return True


def _restore(tracing: Path, enable: Path, state: dict[str, str]) -> None:
    if text(enable) not in ("0", ""):
        enable.write_text("0")
    mine = text(tracing / "current_tracer") == "blk"
    if mine:
        (tracing / "tracing_on").write_text("0")
    for name, value in state.items():
        if name == "current_tracer" and not mine:
            continue
        try:
            (tracing / name).write_text(value)
        except OSError as error:
            raise UserError(
                f"{tracing / name} cannot be put back to '{value}' ({error.strerror}): someone else reads the "
                "tracer's ring; end that reader, then capture again"
            ) from None


def lock(run: Path = RUN) -> TextIO:
    """The lock on the tracer, held until closed; raises UserError when another drivelab traces."""
    run.mkdir(parents=True, exist_ok=True)
    file = (run / "ftrace.lock").open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UserError("another drivelab captures a trace; the kernel has one tracer only, wait for it") from None
    return file


def write_journal(run: Path, before: dict[str, str], device_trace: Path) -> None:
    """Make sure that `before` outlives this process."""
    _write_journal(run / JOURNAL, {"boot_id": boot_id(), "device_trace": str(device_trace), "state": before})


def _write_journal(path: Path, body: dict[str, Any]) -> None:
    part = path.with_name(f"{path.name}.part")
    with part.open("w") as file:
        json.dump(body, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def cpus(tracing: Path = TRACING) -> list[Path]:
    """Folders of the CPUs' rings, in order."""
    return sorted((tracing / "per_cpu").glob("cpu*"), key=lambda path: int(path.name.removeprefix("cpu")))


def text(path: Path) -> str:
    """Stripped content of a file of the kernel; empty when it is not there, as after the device has gone."""
    return read_text(path) or ""


def _value(path: Path) -> str:
    """What to write to get back to the present state: the choice in brackets, the size after the first use."""
    content = path.read_text().strip()
    chosen = re.search(r"\[(\S+)\]|expanded: (\d+)", content)
    return (chosen[1] or chosen[2]) if chosen else content


def _last_line(said: str) -> str:
    return (said.strip().splitlines() or ["no message"])[-1]
