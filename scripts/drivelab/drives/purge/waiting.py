"""Wait for a drive that erases itself, by condition and monotonic time; tests replace `now` and `pause`."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

from drivelab.drives import erasing
from drivelab.drives.tools import Output
from drivelab.errors import UserError
from drivelab.units import format_duration

Say = Callable[[str, float | None], None]
"""Receives what drivelab is doing, and the completed share, 0 to 1, if known."""

now: Callable[[], float] = time.monotonic
pause: Callable[[float], None] = time.sleep
INTERVAL_S = 2.0
"""Polling interval: a sanitize operation takes seconds to hours, and each answer costs the drive time."""
PATIENCE_S = 12 * 3600.0
"""Time that a drive may work without progress: some drives report none, and overwriting all flash takes hours."""
COMMAND_TIMEOUT_S = 7 * 24 * 3600.0
"""Timeout of an erase command, above all known durations, because killing the program does not stop the erase."""


@dataclass(frozen=True)
class Progress:
    """A drive's answer about a running operation."""

    done: bool
    fraction: float | None = None


def until_done(ask: Callable[[], Progress], say: Say, text: str) -> None:
    """Ask until the drive is done; `ask` raises UserError if the drive reports a failure.

    Raises UserError if nothing changed for PATIENCE_S.
    """
    last: Progress | None = None
    changed_s = now()
    while not (progress := ask()).done:
        if progress != last:
            last, changed_s = progress, now()
        elif now() - changed_s > PATIENCE_S:
            raise UserError(
                f"{text} has shown no progress for {format_duration(PATIENCE_S)}; power-cycle the drive and check its "
                "state"
            )
        say(text, progress.fraction)
        pause(INTERVAL_S)
    say(text, 1.0)


def attended(name: str, say: Say, text: str, expected_s: float | None, program: str, *arguments: str) -> Output:
    """Run a program that returns when the drive `name` has finished, and report the estimated progress meanwhile.

    An interrupt is raised only after the program has ended, because a started erase cannot be stopped. If this process
    is killed, the program continues, and the next command waits for it (`drivelab.drives.erasing`).
    """
    started_s = now()
    with ThreadPoolExecutor(max_workers=1) as pool:
        future = pool.submit(erasing.run, name, program, *arguments, timeout_s=COMMAND_TIMEOUT_S)
        done = False
        while not done:
            say(text, min((now() - started_s) / expected_s, 0.99) if expected_s else None)
            done = bool(wait([future], timeout=INTERVAL_S).done)
        return future.result()
