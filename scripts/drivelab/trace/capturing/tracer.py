"""The kernel's only tracer: availability, lock, and journalled state to restore.

A journal records the old state before each change. A process that gets the lock and finds a journal restores from it,
as the journal's writer was killed. If tracefs is not mounted, drivelab mounts and unmounts it in the same way.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from drivelab.core import programs
from drivelab.core.errors import UserError
from drivelab.core.files import write_atomic
from drivelab.core.lock import locked_file
from drivelab.core.private import make_private, run_directory
from drivelab.drives.sysfs import read_text
from drivelab.trace.capturing.capture_report import boot_id

TRACING = Path("/sys/kernel/tracing")
JOURNAL = "ftrace.json"
MOUNT_JOURNAL = "tracefs.json"
"""Exists while drivelab has mounted tracefs."""
OPTIONS = {"markers": "0", "overwrite": "0"}
"""Messages would take space from events. Without `overwrite`, a full ring drops and counts new events instead of
losing old ones."""
_MOUNT = "mount -t tracefs -o nosuid,nodev,noexec tracefs"
SAVED_PROCESSES = 16384
"""Number of process names that the kernel keeps. Its default is 128; a compilation has thousands."""


def possible() -> str | None:
    """Return why this process cannot use the `blk` tracer, or None."""
    if os.geteuid() != 0:
        return "tracing needs root"
    try:
        tracers = (TRACING / "available_tracers").read_text().split()
    except OSError:
        command = ["unshare", "--mount", "sh", "-c", f'{_MOUNT} "$1" && cat "$1/available_tracers"', "sh", str(TRACING)]
        tried = programs.run(command)
        if tried.returncode:
            return f"tracefs cannot be mounted at {TRACING} ({_last_line(tried.stderr)})"
        tracers = tried.stdout.split()
    return None if "blk" in tracers else "this kernel has no blk tracer (CONFIG_BLK_DEV_IO_TRACE)"


def mount() -> None:
    """Mount tracefs unless mounted; the caller holds the lock. Raises UserError when the kernel refuses."""
    if (TRACING / "available_tracers").exists():
        return
    save_journal(run_directory() / MOUNT_JOURNAL, {"boot_id": boot_id(), "tracing": str(TRACING)})
    mounted = programs.run([*_MOUNT.split(), str(TRACING)])
    if mounted.returncode:
        (run_directory() / MOUNT_JOURNAL).unlink()
        raise UserError(
            f"tracefs cannot be mounted at {TRACING} ({_last_line(mounted.stderr)}). Tracing needs it. Mount tracefs, "
            "or run drivelab as root of the host."
        )


def unmount() -> None:
    """Unmount tracefs if `mount` mounted it; the caller holds the lock.

    While another program uses tracefs, mount and journal stay; the next capture tries again.
    """
    journal = run_directory() / MOUNT_JOURNAL
    try:
        body = json.loads(journal.read_text())
    except FileNotFoundError:
        return
    if body["boot_id"] == boot_id() and os.path.ismount(body["tracing"]):
        programs.run(["umount", body["tracing"]])
        if os.path.ismount(body["tracing"]):
            return
    journal.unlink()


def refuse_foreign(device_trace: Path, *, own_ring: bool = True) -> None:
    """Raise UserError when another program traces.

    Without `own_ring`, only tracers that would take events from blktrace count. `device_trace` is
    /sys/class/block/NAME/trace.
    """
    if (current := text(TRACING / "current_tracer")) not in ("nop", "") and (own_ring or current == "blk"):
        raise UserError(
            f"another program uses the kernel's tracer '{current}'; end that trace "
            f"(echo nop > {TRACING}/current_tracer) and try again"
        )
    if own_ring and (events := text(TRACING / "set_event").split()):
        raise UserError(f"another program uses kernel trace events ({events[0]}, …); end that trace first")
    if text(device_trace / "enable") not in ("0", ""):
        raise UserError(
            f"another program traces {device_trace.parent.name}; end that trace first "
            f"(blktrace -k /dev/{device_trace.parent.name}, or echo 0 > {device_trace}/enable)"
        )


def state() -> dict[str, str]:
    """Return what to write to restore the present state, in that order.

    Keys are files relative to the tracing directory.
    """
    names = ["current_tracer", *(f"options/{name}" for name in OPTIONS), "trace_clock", "tracing_cpumask"]
    names += [f"per_cpu/{cpu.name}/buffer_size_kb" for cpu in cpus()]
    return {name: _value(TRACING / name) for name in [*names, "saved_cmdlines_size", "tracing_on"]}


def recover() -> None:
    """Restore the tracer's state after a killed capture.

    The caller holds the lock. A tracer that another program has chosen since is kept. Unmounts tracefs if drivelab
    mounted it. Raises UserError and keeps the journal when the kernel refuses because another program reads the ring.
    """
    journal = run_directory() / JOURNAL
    if journal.exists():
        body = json.loads(journal.read_text())
        if body["boot_id"] == boot_id():
            mount()
            _restore(Path(body["device_trace"]) / "enable", body["state"])
        journal.unlink()
    unmount()


def _restore(enable: Path, state: dict[str, str]) -> None:
    if text(enable) not in ("0", ""):
        enable.write_text("0")
    is_ours = text(TRACING / "current_tracer") == "blk"
    if is_ours:
        (TRACING / "tracing_on").write_text("0")
    for name, value in state.items():
        if name == "current_tracer" and not is_ours:
            continue
        try:
            (TRACING / name).write_text(value)
        except OSError as error:
            raise UserError(
                f"{TRACING / name} cannot be reset to '{value}' ({error.strerror}): another program reads the "
                "tracer's ring; end that program, then capture again"
            ) from None


def lock() -> TextIO:
    """Lock the tracer until closed; raise UserError if another drivelab traces."""
    refusal = "another drivelab process captures a trace; wait, as the kernel has one tracer only"
    return locked_file(make_private(run_directory()) / "ftrace.lock", refusal)


def write_journal(device_trace: Path) -> None:
    """Write the present state to the journal, so that it outlives this process."""
    body = {"boot_id": boot_id(), "device_trace": str(device_trace), "state": state()}
    save_journal(run_directory() / JOURNAL, body)


def save_journal(path: Path, body: Mapping[str, Any]) -> None:
    """Write a journal that is there completely or not at all, also after kill -9 or a crash of the host."""
    write_atomic(path, json.dumps(body))


def cpus() -> list[Path]:
    """Return the folders of the CPUs' rings, in order."""
    return sorted((TRACING / "per_cpu").glob("cpu*"), key=lambda path: int(path.name.removeprefix("cpu")))


def ring_counts(cpu: Path) -> dict[str, int]:
    """Return the counts of a CPU's ring; one read(2), as each sees new counts."""
    file = os.open(cpu / "stats", os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = os.read(file, 4096).decode()
    finally:
        os.close(file)
    return {name: int(value) for name, value in re.findall(r"^([a-z ]+): (\d+)$", content, re.MULTILINE)}


def saved_processes() -> dict[int, str]:
    """Return the process names by PID that the kernel keeps."""
    lines = (line.split(maxsplit=1) for line in (TRACING / "saved_cmdlines").read_text().splitlines())
    return {int(fields[0]): fields[1] for fields in lines if len(fields) == 2}


def text(path: Path) -> str:
    """Return a kernel file's stripped content; empty if missing."""
    return read_text(path) or ""


def _value(path: Path) -> str:
    """Return what to write to restore a file: the choice in brackets, or the size."""
    content = path.read_text().strip()
    chosen = re.search(r"\[(\S+)\]|expanded: (\d+)", content)
    return (chosen[1] or chosen[2]) if chosen else content


def _last_line(stderr: str) -> str:
    return (stderr.strip().splitlines() or ["no message"])[-1]
