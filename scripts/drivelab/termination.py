"""The signals that ask a command to end: SIGINT (Ctrl-C), SIGTERM, and SIGHUP (its terminal or connection is closed).

All of them raise KeyboardInterrupt in the main thread, so a command ends through its `finally` clauses: it puts host
settings back, ends its programs and keeps what is finished. After SIGTERM or SIGHUP more of these two are ignored: a
shell sends SIGHUP to its jobs after the kernel did, and the second one must not cut the clearing up short. Ctrl-C
still does. Snakemake has handlers of its own, see `on_termination`.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Request:
    """Whether a signal asked this process to end, and whether that has to wait."""

    asked = False
    waiting = False
    deferrals = 0


_request = _Request()


def end_in_order() -> None:
    """Have SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt; for the main thread only.

    SIGINT and SIGHUP stay ignored where they are at the start: nohup(1) and shells without job control ask for that.
    """
    _request.asked = _request.waiting = False
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number == signal.SIGTERM or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)


@contextmanager
def deferred() -> Iterator[None]:
    """Do what is within to its end; a signal that comes meanwhile raises KeyboardInterrupt after it.

    For what is short and must not be done by half, such as putting settings back. Without effect in other threads,
    which signals do not interrupt.
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


def on_termination(act: Callable[[], object]) -> None:
    """Have SIGTERM and SIGHUP call `act` in a thread of its own; for the main thread only, and for Snakemake.

    Snakemake's handler takes the scheduler's lock. A handler runs in the main thread, between two of its instructions,
    and where those are within that lock nobody ever lets go of it (JobScheduler.exit_gracefully): the run hung then.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: threading.Thread(target=act, name="termination").start())


def _end(number: int, _: object) -> None:
    if number == signal.SIGHUP:
        _leave_closed_terminal()
    if number != signal.SIGINT and _request.asked:
        return
    _request.asked = True
    if _request.deferrals:
        _request.waiting = True
        return
    raise KeyboardInterrupt


def _leave_closed_terminal() -> None:
    """Send output to nowhere that can go nowhere: an error on printing would cut the clearing up short."""
    for descriptor in (1, 2):
        try:
            os.write(descriptor, b"")  # EIO from a terminal that is gone (tty_write)
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
