"""A source of telemetry: a name, what it reads, and how often that may be done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FAST_S = 1.0
SLOW_S = 10.0
"""Cadence of what starts a program or sends the drive a command that others have to wait for."""


@dataclass(frozen=True)
class Source:
    """Something that is read again and again while a drive is measured."""

    name: str
    read: Callable[[], dict[str, float]]
    """Values by field, units in the names of the fields; a field is left out where there is nothing to be read.

    Raises any exception when it fails.
    """
    period_s: float | None = FAST_S
    """Seconds between two readings; None: only at the start and at the end of a measurement."""
    prompt: bool = False
    """Answers from the kernel's memory within microseconds, whatever the drive does: it is read at the edges of every
    cell too."""


def number_in(path: Path) -> float:
    """The number that a small file holds. Raises OSError or ValueError."""
    return float(path.read_text())
