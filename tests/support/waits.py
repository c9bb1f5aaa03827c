"""Start drivelab's command, and wait for what processes do."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

DRIVELAB = (sys.executable, "-c", "import sys; from drivelab.cli.main import main; sys.exit(main())")
GENEROUS_S = 900.0
"""Time after which a process counts as hanging; a whole study takes minutes beside other tests."""


def wait_until(
    condition: Callable[[], object],
    *running: subprocess.Popen[Any],
    tell: Callable[[], str] = lambda: "the condition was not met in time",
) -> Any:
    """Return the first true value; fail, with what `tell` says, if it never comes or a process `running` ends."""
    deadline_s = time.monotonic() + GENEROUS_S
    while not (value := condition()):
        for process in running:
            assert process.poll() is None or condition(), process.communicate()
        assert time.monotonic() < deadline_s, tell()
        time.sleep(0.005)
    return value
