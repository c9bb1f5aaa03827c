"""Host settings, their parts, and what scenarios want."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from drivelab.drives.undo import Command, current_value
from drivelab.host.machine import Machine

SCENARIOS = ("real-world", "synthetic")


@dataclass(frozen=True)
class Part:
    """One part of a setting: a CPU's file, a timer, a swap area."""

    name: str
    value: str
    path: Path | None = None
    """The file that holds the value, if any."""
    do: Command | None = None
    """For parts without a file: the command for the wanted state; `undo` returns to the current state."""
    undo: Command | None = None

    def sibling(self, name: str) -> str:
        """Return the content of a file at a path relative to this part's folder.

        The result is empty without the file.
        """
        return (current_value(self.path.parent / name) or "") if self.path else ""


@dataclass(frozen=True)
class Wish:
    """The state of a setting that a scenario wants."""

    words: str
    accepts: Callable[[Part], bool | None]
    """Return whether a part has the wanted state; None if unknown."""
    target: Callable[[Part], str | None] = lambda part: None
    """Return the value to write to the part's file; None if drivelab does not set it."""


def in_words(parts: Sequence[Part]) -> str:
    """Return the values, the most frequent first, with counts if they differ."""
    counts = Counter(part.value for part in parts)
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{value} ({number})" for value, number in counts.most_common())


@dataclass(frozen=True)
class Setting:
    """One row of `drivelab doctor`."""

    name: str
    effect: str
    """Why it matters for measured IOPS and latency."""
    how: str
    """How to set it."""
    read: Callable[[Machine, str], list[Part] | None]
    """Return the parts on a host, or of the drive with a kernel name; None if not available here."""
    real_world: Wish
    synthetic: Wish
    laptop: Wish | None = None
    """What the guide wants on laptops in both scenarios, if different from desktops."""
    per_drive: bool = False
    describe: Callable[[Sequence[Part]], str] = in_words
    empty: str = "none"
    """State without parts."""

    def wish(self, scenario: str, machine: Machine) -> Wish:
        if self.laptop is not None and machine.laptop:
            return self.laptop
        return self.real_world if scenario == "real-world" else self.synthetic
