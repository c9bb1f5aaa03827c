"""Define a telemetry source: a name, a reading function, and a period."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FAST_S = 1.0
SLOW_S = 10.0
"""Period of sources that start a program or send the drive a command that delays others."""


@dataclass(frozen=True)
class Source:
    """A source that is read repeatedly during a measurement."""

    name: str
    read: Callable[[], dict[str, float]]
    """Return values by field, with units in the field names; fields without a value are left out.

    Raises any exception on failure.
    """
    period_s: float | None = FAST_S
    """Seconds between readings; None: only at the start and end of a measurement."""
    prompt: bool = False
    """Whether it answers from the kernel's memory within microseconds, independent of the drive; such sources are also
    read at the edges of every cell."""


def number_in(path: Path) -> float:
    """Return the number in a small file; raises OSError or ValueError."""
    return float(path.read_text())
