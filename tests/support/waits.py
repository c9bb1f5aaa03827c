"""Wait for what other processes do."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any

GENEROUS_S = 900.0
"""Time after which a process counts as hanging; a whole study takes minutes beside other tests."""


def wait_until(condition: Callable[[], object], *running: subprocess.Popen[Any]) -> None:
    """Wait for a condition; fail if it never holds, or if one of the processes `running` ends first."""
    deadline_s = time.monotonic() + GENEROUS_S
    while not condition():
        for process in running:
            assert process.poll() is None or condition(), process.communicate()
        assert time.monotonic() < deadline_s, "the condition was not met in time"
        time.sleep(0.005)
