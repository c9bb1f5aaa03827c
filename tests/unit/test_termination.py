"""A run that is asked to end does, wherever it is."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from drivelab.termination import on_sigterm

PATIENCE_S = 60.0
"""Only ends a test that has failed."""


@pytest.fixture(autouse=True)
def own_handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_the_main_thread_may_hold_what_the_handler_takes() -> None:
    """Where the handler ran in the main thread, this would hang."""
    lock, ended = threading.Lock(), threading.Event()

    def end() -> None:
        with lock:
            ended.set()

    on_sigterm(end)
    with lock:
        os.kill(os.getpid(), signal.SIGTERM)
        assert not ended.wait(0.0)
    assert ended.wait(PATIENCE_S)
