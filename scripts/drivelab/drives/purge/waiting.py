"""Waiting for a drive that erases itself, by condition and monotonic time; tests replace `now` and `pause`."""

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
"""Is told what is going on, and the share of it that is done, if that is known."""

now: Callable[[], float] = time.monotonic
pause: Callable[[float], None] = time.sleep
INTERVAL_S = 2.0
"""Between two questions: a sanitize operation takes seconds to hours, and answering costs the drive time."""
PATIENCE_S = 12 * 3600.0
"""How long a drive may work without any sign of progress: some tell none, and an overwrite of all flash takes hours."""
COMMAND_TIMEOUT_S = 7 * 24 * 3600.0
"""Of a command that erases: to kill the program would not end the erasing, so this is above all that is known."""


@dataclass(frozen=True)
class Progress:
    """What a drive answers."""

    done: bool
    fraction: float | None = None


def until_done(ask: Callable[[], Progress], say: Say, text: str) -> None:
    """Ask until the drive is done; `ask` raises UserError itself when the drive says that it failed.

    Raises UserError when nothing changed for PATIENCE_S.
    """
    last: Progress | None = None
    changed_s = now()
    while not (progress := ask()).done:
        if progress != last:
            last, changed_s = progress, now()
        elif now() - changed_s > PATIENCE_S:
            raise UserError(
                f"{text} has shown no progress for {format_duration(PATIENCE_S)}; power-cycle the drive and look what "
                "state it is in"
            )
        say(text, progress.fraction)
        pause(INTERVAL_S)
    say(text, 1.0)


def attended(name: str, say: Say, text: str, expected_s: float | None, program: str, *arguments: str) -> Output:
    """Run a program that returns when the drive `name` has finished, and say meanwhile how far it should be.

    An interrupt is raised only when the program has ended: an erase that has begun cannot be called back. If this
    process is killed, the program goes on, and the next command waits for it (`drivelab.drives.erasing`).
    """
    started_s = now()
    with ThreadPoolExecutor(max_workers=1) as pool:
        future = pool.submit(erasing.run, name, program, *arguments, timeout_s=COMMAND_TIMEOUT_S)
        done = False
        while not done:
            say(text, min((now() - started_s) / expected_s, 0.99) if expected_s else None)
            done = bool(wait([future], timeout=INTERVAL_S).done)
        return future.result()
