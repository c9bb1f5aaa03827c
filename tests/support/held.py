"""A stage that is held between two cells, see `Project.make_held`, and the run that it is of."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

PATIENCE_S = 900.0
"""Only ends a test that has failed."""
RUN = ("env", "--default-signal=HUP", sys.executable, "-c",
       "import sys; from drivelab.cli.main import main; sys.exit(main())")  # fmt: skip
"""The command. SIGHUP is what the kernel sends with SIGCONT to a group of processes that is left without a parent, if
one of them is stopped: where it is ignored, as below nohup, that one would go on."""


def let_end(held: int) -> None:
    """Let a stage that is held go on after its run was killed: it ends, as it is told to.

    One process after the other hears of the death of its parent, so that the stage is told only after a while.
    """
    wait(lambda: is_told_to_end(held))
    with suppress(ProcessLookupError):
        os.kill(held, signal.SIGCONT)


def state_of(pid: int) -> str:
    """Of a process, as the kernel writes it: T is stopped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def is_told_to_end(pid: int) -> bool:
    """Whether SIGTERM waits for a process that is stopped, or SIGHUP has ended it."""
    if state_of(pid) != "T":
        return True
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    pending = (int(line.split()[1], 16) for line in lines if line.startswith(("SigPnd:", "ShdPnd:")))
    return any(signals >> (signal.SIGTERM - 1) & 1 for signals in pending)


def wait(until: Callable[[], Any]) -> Any:
    """What it finds, once that is something."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not (found := until()):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    return found
