"""End a command on SIGINT (Ctrl-C), SIGTERM, or SIGHUP (its terminal or connection is closed).

These signals raise KeyboardInterrupt in the main thread, so a command ends through its `finally` clauses: it restores
host settings, ends its programs and keeps finished measurements. After SIGTERM or SIGHUP, further ones are ignored: a
shell sends SIGHUP to its jobs after the kernel did, and the second must not cut the clean-up short. Ctrl-C still does.
Snakemake has its own handlers, see `end_in_thread`.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_PR_SET_PDEATHSIG = 1


class _Request:
    """State of a request to end this process: received, and waiting for a deferral."""

    received = False
    waiting = False
    deferrals = 0


_request = _Request()


def end_in_order() -> None:
    """Make SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt; call it in the main thread.

    SIGINT and SIGHUP stay ignored if they were at the start, as by nohup(1) and shells without job control.
    """
    _request.received = _request.waiting = False
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number == signal.SIGTERM or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)


@contextmanager
def deferred() -> Iterator[None]:
    """Run the block to its end; a signal that arrives meanwhile raises KeyboardInterrupt afterwards.

    For short work that must not stop half-way, such as restoring settings. Has no effect in other threads, which
    signals do not interrupt.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _request.deferrals += 1
    try:
        yield
    finally:
        _request.deferrals -= 1
        if _request.waiting and not _request.deferrals:
            _request.waiting = False
            raise KeyboardInterrupt


def end_in_thread() -> None:
    """Make SIGTERM and SIGHUP call the present handler of SIGTERM in a separate thread; call it in the main thread.

    For Snakemake, whose handler takes the lock of its scheduler. A handler runs in the main thread, between two of its
    instructions. If the main thread held the lock there, the run would hang for ever. Raises RuntimeError if SIGTERM
    has no handler.
    """
    act = signal.getsignal(signal.SIGTERM)
    if not callable(act):
        raise RuntimeError("SIGTERM has no handler, so the run would not end in order")
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *facts: threading.Thread(target=act, args=facts, name="termination").start())


def end_with(parent: int) -> None:
    """Make the kernel kill this process when its parent ends (prctl(2)); exit now if that has happened."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _end(number: int, _: object) -> None:
    if number == signal.SIGHUP:
        _leave_closed_terminal()
    if number != signal.SIGINT and _request.received:
        return
    _request.received = True
    if _request.deferrals:
        _request.waiting = True
        return
    raise KeyboardInterrupt


def _leave_closed_terminal() -> None:
    """Redirect output of a closed terminal to /dev/null: an error on printing would cut the clean-up short."""
    for descriptor in (1, 2):
        try:
            os.write(descriptor, b"")  # EIO from a terminal that is gone (tty_write)
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
