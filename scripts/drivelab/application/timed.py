"""Time one run of an application's command on its file system."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from drivelab.core.errors import CellFailed
from drivelab.core.files import sync_file_system
from drivelab.core.programs import Tick, Timing
from drivelab.drives.sysfs import SECTOR_BYTES, block_dir, read_text
from drivelab.recording.writer import write_json
from drivelab.trace.capturing import applications, guardian
from drivelab.trace.capturing import command as running
from drivelab.trace.capturing.applications import Application
from drivelab.trace.capturing.guardian import Guardian

RUN_FILE = "application.json"
"""Written by `drivelab.application.timed` beside the command's stdout and stderr."""
_MESSAGE_CHARACTERS = 300


@dataclass(frozen=True)
class Outcome:
    """A finished run."""

    duration_s: float
    """Time from the start of the command until all its writes were on the drive."""
    command_s: float | None
    """Time of the command alone. This and all below but I/Os and bytes are None if a replay replaced the run."""
    sync_s: float | None
    """Time of the file system's sync after the command; short for an application that syncs itself."""
    exit_status: int | None
    user_s: float | None
    system_s: float | None
    max_rss_bytes: int | None
    """Memory of the largest process; also None if the kernel cannot distinguish it from drivelab's own."""
    read_ios: int
    write_ios: int
    read_bytes: int
    """From the kernel's counters of the drive, including the final sync."""
    write_bytes: int

    def to_mapping(self) -> dict[str, Any]:
        """Return the known values, JSON-able."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def of_command(folder: Path) -> Outcome:
    """Return the outcome of a run in real time.

    Raises CellFailed with the command's last message when the run failed.
    """
    try:
        body = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CellFailed(f"{folder / RUN_FILE} cannot be read ({error})") from None
    if status := body["exit_status"]:
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        raise CellFailed(f"application '{body['application']}' {how}: {_last_message(folder)}")
    if body["sync_fault"] is not None:
        raise CellFailed(f"the data of application '{body['application']}' is not on the drive: {body['sync_fault']}")
    if body["write_ios"] < 0 or body["read_ios"] < 0 or not any(body["stat_after"].values()):
        raise CellFailed(f"the drive disappeared while application '{body['application']}' ran")
    return Outcome(**{name: body[name] for name in Outcome.__dataclass_fields__})


def of_stand_in(report: Mapping[str, Any]) -> Outcome:
    """Return the outcome of a replay that replaced the application.

    `report` is that of drivelab.replay.evaluation.replay_report.

    Raises CellFailed for an unfinished replay.
    """
    if report["state"] != "finished" or report["partial"]:
        raise CellFailed("; ".join(report["marks"]))
    completed = {name: report["completed"].get(name, {}) for name in ("read", "write")}
    return Outcome(
        duration_s=float(report["duration_s"]),
        command_s=None,
        sync_s=None,
        exit_status=None,
        user_s=None,
        system_s=None,
        max_rss_bytes=None,
        **{f"{name}_ios": int(count.get("requests", 0)) for name, count in completed.items()},
        **{f"{name}_bytes": int(count.get("bytes", 0)) for name, count in completed.items()},
    )


def _last_message(folder: Path) -> str:
    for name in ("stderr", "stdout"):
        try:
            lines = (folder / name).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        except OSError:
            continue
        if lines:
            return lines[-1][:_MESSAGE_CHARACTERS]
    return "it printed no message"


Run = Callable[[Path, Tick], Timing | None]
"""Runs an application's command once and writes its evidence to an existing folder. Returns None on the virtual
clock."""

_TICK_S = 1.0


@contextmanager
def ready(spec: Application, device: str) -> Iterator[Run]:
    """Mount and set up the file system, and yield the function that runs the command.

    Neither mkfs nor the file system discards, so the drive keeps its preconditioned data in use. If this process is
    killed, a guardian cleans up, as for captures.

    Raises UserError when making, mounting, setting up or tearing down the file system fails.
    """
    with guardian.watch() as guard, applications.prepared(spec, device, discard=False) as mount:
        yield partial(_run, spec, device, mount, guard)


def _run(spec: Application, device: str, mount: Path, guard: Guardian, folder: Path, on_tick: Tick) -> Timing:
    """Run the command once; the caller judges exit status and sync errors."""
    command = applications.resolve(spec.command, mount)
    counters = _counters(device)
    started_s = time.monotonic()
    outcome = running.run(
        command, mount, folder, lambda: on_tick(time.monotonic() - started_s), _TICK_S, guard.session, guard.environment
    )
    sync_began_s = time.monotonic()
    fault = _sync(mount)
    ended_s = time.monotonic()
    after = _counters(device)
    moved = {name: after[name] - counters[name] for name in counters}
    sync_s = ended_s - sync_began_s
    write_json(
        folder / RUN_FILE,
        {
            "application": spec.name,
            "command": list(spec.command),  # not the paths of this host, since recordings are published
            "exit_status": outcome.exit_status,
            "sync_fault": fault,
            "duration_s": outcome.duration_s + sync_s,
            "command_s": outcome.duration_s,
            "sync_s": sync_s,
            "user_s": outcome.user_s,
            "system_s": outcome.system_s,
            "max_rss_bytes": outcome.max_rss_bytes,
            "stat_before": counters,
            "stat_after": after,
            "read_ios": moved["read_ios"],
            "write_ios": moved["write_ios"],
            "read_bytes": moved["sectors_read"] * SECTOR_BYTES,
            "write_bytes": moved["sectors_written"] * SECTOR_BYTES,
        },
    )
    return Timing(started_s, ended_s)


def _sync(mount: Path) -> str | None:
    """Write all data to the drive; return the error message, or None."""
    try:
        sync_file_system(mount)
    except OSError as error:
        return error.strerror
    return None


def _counters(device: str) -> dict[str, int]:
    """Return the kernel's counters of the drive; all zero if the drive is gone. See Documentation/block/stat.rst."""
    fields = (read_text(block_dir(Path(device).name) / "stat") or "").split()
    places = {"read_ios": 0, "sectors_read": 2, "write_ios": 4, "sectors_written": 6, "busy_ms": 9, "discard_ios": 11}
    return {name: int(fields[place]) if place < len(fields) else 0 for name, place in places.items()}
