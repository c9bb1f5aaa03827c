"""Detach the server process of a virtual drive from the process that starts it, and kill it."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from drivelab.core.sight import blindness
from drivelab.virtual import fuse


def daemonize(log: Path) -> int:
    """Continue as a detached process in a new session; return the descriptor for the ready report.

    The calling process waits for the report, prints it and ends, with exit status 0 if there was one, else 1.
    """
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        os.close(reader)
        null, out = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for descriptor, standard in ((null, 0), (out, 1), (out, 2)):
            os.dup2(descriptor, standard)
        os.chdir("/")
        return writer
    os.close(writer)
    with os.fdopen(reader) as pipe:
        report = pipe.read()
    sys.stdout.write(report)
    sys.stdout.flush()
    os._exit(0 if report else 1)


def kill(pid: int, is_it: Callable[[], bool], timeout_s: float) -> None:
    """Send SIGKILL, which also ends a stopped process, and wait; `is_it` checks that the pid was not reused."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            if is_it():  # checked after pidfd_open, because the descriptor pins the process
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                select.select([descriptor], [], [], timeout_s)
        finally:
            os.close(descriptor)


def possible() -> str | None:
    """Try a real mount and loop device; return why virtual drives cannot run in real time here, or None."""
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
        return f"virtual drives in real time need FUSE, but mounting it fails here ({error.strerror})"
    try:
        os.close(os.open(fuse.free_loop_device(), os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"virtual drives in real time need a loop device, but none is available here ({error.strerror})"
    if (reason := blindness()) is not None:  # the guard would refuse the drive
        return f"virtual drives in real time need the guard, but {reason}"
    return None
