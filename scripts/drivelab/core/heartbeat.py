"""Signs of life of a process that works for a long time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

PERIOD_S = 10.0
"""Seconds between signs of life, at most."""
SILENT_S = 3 * PERIOD_S
"""Time without a sign of life after which a remote process counts as silent; its clock and the file system may lag."""


class Heartbeat:
    """Calls a function every `PERIOD_S` in a thread until it ends; the process may end earlier."""

    def __init__(self, beat: Callable[[], object]) -> None:
        self._beat, self._ending = beat, threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Start to call the function."""
        self._thread.start()

    def end(self) -> None:
        """Call the function no more, from the return of this on."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ending.wait(PERIOD_S):
            with suppress(OSError):  # such as on a full disk: the next one may succeed
                self._beat()
