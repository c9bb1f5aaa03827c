"""Handle a stage that is stopped between two cells (see `Project.make_held`), and its run."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from waits import DRIVELAB, wait_until

from drivelab.core.programs import process_state

RUN = ("env", "--default-signal=HUP", *DRIVELAB)
"""The command with default SIGHUP. The kernel sends SIGHUP and SIGCONT to an orphaned process group with a stopped
process. If SIGHUP were ignored, as under nohup, that process would continue."""


def let_end(held: int) -> None:
    """Continue a stopped stage after its run was killed; its pending signal ends it.

    The processes learn one after another that their parent died, so the signal reaches the stage with a delay.
    """
    wait_until(lambda: has_end_signal(held))
    with suppress(ProcessLookupError):
        os.kill(held, signal.SIGCONT)


def has_end_signal(pid: int) -> bool:
    """Whether SIGTERM is pending for a stopped process, or SIGHUP has ended the process."""
    if process_state(pid)[0] != "T":
        return True
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    pending = (int(line.split()[1], 16) for line in lines if line.startswith(("SigPnd:", "ShdPnd:")))
    return any(signals >> (signal.SIGTERM - 1) & 1 for signals in pending)
