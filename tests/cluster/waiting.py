"""Wait for events in other processes."""

from __future__ import annotations

import time
from collections.abc import Callable

_PATIENCE_S = 900.0
"""Generous, because the machine may be busy; only a failed test reaches this limit."""
_POLL_S = 0.05


def wait_until(condition: Callable[[], object], event: str, tell: Callable[[], str] = str) -> None:
    """Wait for a condition; raises AssertionError with the output of `tell` if it never holds."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, f"timed out waiting for {event}\n{tell()}"
        time.sleep(_POLL_S)
