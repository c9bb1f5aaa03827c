"""Time one run of an application's command on its file system."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from drivelab.application.outcome import RUN_FILE
from drivelab.drives.sysfs import SECTOR_BYTES, block_dir, read_text
from drivelab.process import Tick, Timing
from drivelab.recording.writer import write_json
from drivelab.trace import application
from drivelab.trace.application import Application
from drivelab.trace.capturing import command as running
from drivelab.trace.capturing import guardian
from drivelab.trace.capturing.guardian import Guardian

Run = Callable[[Path, Tick], Timing | None]
"""Runs an application's command once and writes its evidence to an existing folder. Returns None on the virtual
clock."""

_TICK_S = 1.0
_LIBC = ctypes.CDLL(None, use_errno=True)


@contextmanager
def ready(spec: Application, device: str) -> Iterator[Run]:
    """Mount and set up the file system, and yield the function that runs the command.

    Neither mkfs nor the file system discards, so the drive keeps its preconditioned data in use. If this process is
    killed, a guardian cleans up, as for captures.

    Raises UserError when making, mounting, setting up or tearing down the file system fails.
    """
    with guardian.watch() as guard, application.prepared(spec, device, discard=False) as mount:
        yield partial(_run, spec, device, mount, guard)


def _run(spec: Application, device: str, mount: Path, guard: Guardian, folder: Path, on_tick: Tick) -> Timing:
    """Run the command once; the caller judges exit status and sync errors."""
    command = application.resolve(spec.command, mount)
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
            "command": command,
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
    """Write all data to the drive (syncfs(2)); return the error message, or None."""
    descriptor = os.open(mount, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return os.strerror(ctypes.get_errno()) if _LIBC.syncfs(descriptor) else None
    finally:
        os.close(descriptor)


def _counters(device: str) -> dict[str, int]:
    """Return the kernel's counters of the drive; all zero if the drive is gone.

    See Documentation/block/stat.rst.
    """
    fields = (read_text(block_dir(Path(device).name) / "stat") or "").split()
    places = {"read_ios": 0, "sectors_read": 2, "write_ios": 4, "sectors_written": 6, "busy_ms": 9, "discard_ios": 11}
    return {name: int(fields[place]) if place < len(fields) else 0 for name, place in places.items()}
