"""Detach the server process of a virtual drive from the process that starts it, and kill it."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


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
