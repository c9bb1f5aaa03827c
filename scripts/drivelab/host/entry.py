"""Define catalogue entries: settings, their parts, and what scenarios want."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from drivelab.drives.sysfs import block_dir
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


def exactly(value: str, words: str = "") -> Wish:
    """Want this value; drivelab sets it."""
    return Wish(words or value, lambda part: part.value == value, lambda part: value)


def only(*values: str, words: str = "") -> Wish:
    """Want one of these values; drivelab does not set it."""
    return Wish(words or " or ".join(values), lambda part: part.value in values)


def anything(words: str = "as shipped") -> Wish:
    """Accept any value; it is recorded, because it affects comparisons."""
    return Wish(words, lambda part: True)


def nothing(words: str = "none") -> Wish:
    """Want no part; if drivelab may remove a part, the part has the command."""
    return Wish(words, lambda part: False)


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
    guide: str
    """Section and rows of the Solidigm guide; empty for settings that only Linux has."""
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


def files(*patterns: str) -> Callable[[Machine, str], list[Part] | None]:
    """Read files below /sys; the first pattern with a file counts."""
    return lambda machine, drive: _parts(machine.sys_root, patterns)


def proc_files(*patterns: str) -> Callable[[Machine, str], list[Part] | None]:
    """Read files below /proc."""
    return lambda machine, drive: _parts(machine.proc_root, patterns)


def drive_files(*patterns: str) -> Callable[[Machine, str], list[Part] | None]:
    """Read files below the drive's folder in /sys/class/block."""
    return lambda machine, drive: _parts(block_dir(drive, machine.sys_root), patterns)


def upward_files(pattern: str) -> Callable[[Machine, str], list[Part] | None]:
    """Read files of every device between the drive and the root of its bus."""

    def read(machine: Machine, drive: str) -> list[Part] | None:
        parts = [part for folder in machine.ancestors(drive) for part in _parts(folder, (pattern,)) or []]
        return parts or None

    return read


def programs(*names: str) -> Callable[[Machine, str], list[Part] | None]:
    """List which of these programs run."""

    def read(machine: Machine, drive: str) -> list[Part] | None:
        running = machine.running(names)
        return None if running is None else [Part(name, name) for name in running]

    return read


def _parts(root: Path, patterns: Sequence[str]) -> list[Part] | None:
    for pattern in patterns:
        values = [(path, current_value(path)) for path in sorted(root.glob(pattern))]
        if parts := [Part(str(path), value, path) for path, value in values if value is not None]:
            return parts
    return None
