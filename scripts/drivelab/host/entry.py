"""What a catalogue entry is: a setting, where it stands, and what each scenario wishes of it."""

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
    """One place where a setting stands: a file of a CPU, a timer, a swap area."""

    name: str
    value: str
    path: Path | None = None
    """The file that holds the value, if one does."""
    do: Command | None = None
    """For what no file holds: brings it into the wanted state, and `undo` back into this one."""
    undo: Command | None = None

    def beside(self, name: str) -> str:
        """Content of a file in the same folder, or of another path relative to it; empty if there is none."""
        return (current_value(self.path.parent / name) or "") if self.path else ""


@dataclass(frozen=True)
class Wish:
    """What a scenario wants of a setting."""

    words: str
    accepts: Callable[[Part], bool | None]
    """Whether a part is as wanted; None if nobody can tell."""
    target: Callable[[Part], str | None] = lambda part: None
    """The value to write to the part's file; None where drivelab does not set it."""


def exactly(value: str, words: str = "") -> Wish:
    """This value, and drivelab sets it."""
    return Wish(words or value, lambda part: part.value == value, lambda part: value)


def only(*values: str, words: str = "") -> Wish:
    """One of these values; drivelab does not set it."""
    return Wish(words or " or ".join(values), lambda part: part.value in values)


def anything(words: str = "as shipped") -> Wish:
    """Any value: it is recorded, because two studies whose hosts differ in it are not alike."""
    return Wish(words, lambda part: True)


def nothing(words: str = "none") -> Wish:
    """No part at all; each has its own command to be taken away by, if drivelab may."""
    return Wish(words, lambda part: False)


def in_words(parts: Sequence[Part]) -> str:
    """The values that occur, the commonest first, with their numbers if they differ."""
    counts = Counter(part.value for part in parts)
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{value} ({number})" for value, number in counts.most_common())


@dataclass(frozen=True)
class Setting:
    """One row of `drivelab doctor`."""

    name: str
    guide: str
    """Section and rows of the Solidigm guide that it translates; empty for what Linux adds to them."""
    effect: str
    """Why it matters for measured IOPS and latency."""
    how: str
    """How to set it."""
    read: Callable[[Machine, str], list[Part] | None]
    """Its parts on a host, of the drive of that kernel name if it is a drive's; None: not available here."""
    real_world: Wish
    synthetic: Wish
    laptop: Wish | None = None
    """What the guide wants of laptops in both scenarios, where it tells them from desktops."""
    per_drive: bool = False
    describe: Callable[[Sequence[Part]], str] = in_words
    empty: str = "none"
    """State without a part."""

    def wish(self, scenario: str, machine: Machine) -> Wish:
        if self.laptop is not None and machine.laptop:
            return self.laptop
        return self.real_world if scenario == "real-world" else self.synthetic


def files(*patterns: str) -> Callable[[Machine, str], list[Part] | None]:
    """Reads files below /sys; of several patterns the first that exists counts."""
    return lambda machine, drive: _parts(machine.sys_root, patterns)


def proc_files(*patterns: str) -> Callable[[Machine, str], list[Part] | None]:
    """Reads files below /proc."""
    return lambda machine, drive: _parts(machine.proc_root, patterns)


def drive_files(*patterns: str) -> Callable[[Machine, str], list[Part] | None]:
    """Reads files below the drive's folder in /sys/class/block."""
    return lambda machine, drive: _parts(block_dir(drive, machine.sys_root), patterns)


def upward_files(pattern: str) -> Callable[[Machine, str], list[Part] | None]:
    """Reads files of every device between the drive and the root of its bus."""

    def read(machine: Machine, drive: str) -> list[Part] | None:
        parts = [part for folder in machine.ancestors(drive) for part in _parts(folder, (pattern,)) or []]
        return parts or None

    return read


def programs(*names: str) -> Callable[[Machine, str], list[Part] | None]:
    """Those of the programs that run."""

    def read(machine: Machine, drive: str) -> list[Part] | None:
        running = machine.running(names)
        return None if running is None else [Part(name, name) for name in running]

    return read


def _parts(root: Path, patterns: Sequence[str]) -> list[Part] | None:
    for pattern in patterns:
        found = [(path, current_value(path)) for path in sorted(root.glob(pattern))]
        if parts := [Part(str(path), value, path) for path, value in found if value is not None]:
            return parts
    return None
