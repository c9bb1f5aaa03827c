"""Waiting for what happens in other processes."""

from __future__ import annotations

import time
from collections.abc import Callable

_PATIENCE_S = 900.0
"""Only ends a test that has failed: what is waited for is an event, however busy the machine is."""
_POLL_S = 0.05


def wait_until(condition: Callable[[], object], what: str, tell: Callable[[], str] = str) -> None:
    """Raises AssertionError, with what `tell` knows of the reason, if it never happens."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, f"waited in vain for {what}\n{tell()}"
        time.sleep(_POLL_S)
