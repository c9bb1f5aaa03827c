"""Handle a stage that is stopped between two cells (see `Project.make_held`), and its run."""

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
"""Time limit, reached only by a failed test."""
RUN = ("env", "--default-signal=HUP", sys.executable, "-c",
       "import sys; from drivelab.cli.main import main; sys.exit(main())")  # fmt: skip
"""The command with default SIGHUP. The kernel sends SIGHUP and SIGCONT to an orphaned process group with a stopped
process. If SIGHUP were ignored, as under nohup, that process would continue."""


def let_end(held: int) -> None:
    """Continue a stopped stage after its run was killed; its pending signal ends it.

    The processes learn one after another that their parent died, so the signal reaches the stage with a delay.
    """
    wait(lambda: has_end_signal(held))
    with suppress(ProcessLookupError):
        os.kill(held, signal.SIGCONT)


def state_of(pid: int) -> str:
    """Return the kernel's state letter of a process: T is stopped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def has_end_signal(pid: int) -> bool:
    """Whether SIGTERM is pending for a stopped process, or SIGHUP has ended the process."""
    if state_of(pid) != "T":
        return True
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    pending = (int(line.split()[1], 16) for line in lines if line.startswith(("SigPnd:", "ShdPnd:")))
    return any(signals >> (signal.SIGTERM - 1) & 1 for signals in pending)


def wait(until: Callable[[], Any]) -> Any:
    """Wait until `until` returns a true value, and return it."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not (result := until()):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    return result
