"""SIGTERM to Snakemake, which its own handler can make wait for ever."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable


def on_sigterm(act: Callable[[], object]) -> None:
    """Have SIGTERM call `act` in a thread of its own; only the main thread may ask for it (signal(3) in Python).

    Snakemake's handler takes the scheduler's lock. A handler runs in the main thread, between two of its instructions,
    and where those are within that lock nobody ever lets go of it (JobScheduler.exit_gracefully): the run hung then.
    """
    signal.signal(signal.SIGTERM, lambda number, frame: threading.Thread(target=act, name="sigterm").start())
