"""The process of a virtual drive's server: how it lets go of its starter, and how it is ended."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def daemonize(log: Path) -> int:
    """Go on as a detached process of its own session; returns the descriptor to report to when ready.

    The process that was called waits for that report, prints it and ends: 0 if there was one, else 1.
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
    """SIGKILL, which a stopped process obeys too, and wait for the end; `is_it` tells it from a later one."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            if is_it():  # still the same now that the descriptor holds on to it
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                select.select([descriptor], [], [], timeout_s)
        finally:
            os.close(descriptor)
