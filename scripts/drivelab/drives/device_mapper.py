"""Read the tables of the device mapper (dmsetup(8)): where a mapping writes, and in which state it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from drivelab.drives import tools
from drivelab.drives.sysfs import block_dir, read_text

KNOWN = {
    "linear", "striped", "crypt", "multipath", "thin", "thin-pool", "raid", "mirror", "cache", "writecache",
    "integrity",
}  # fmt: skip
"""Targets that write to the devices of their table only, and whose blocks no other mapping sees."""
POOL, THIN = "thin-pool", "thin"
_NUMBERS = re.compile(r"\d+:\d+")


@dataclass(frozen=True)
class Target:
    """One line of a table (Documentation/admin-guide/device-mapper)."""

    begin: int
    length: int
    """In sectors of 512 bytes, as all numbers of a table."""
    kind: str
    arguments: tuple[str, ...]

    @property
    def devices(self) -> tuple[str, ...]:
        """`major:minor` of the devices that the line names."""
        return tuple(word for word in self.arguments if _NUMBERS.fullmatch(word))

    def extents(self, numbers: str) -> list[tuple[int, int]] | None:
        """Return begin and end of the blocks used on a device, in sectors; None if all may be used."""
        words = self.arguments
        places: list[tuple[int, int]] = []
        if self.kind == "linear":
            places = [(int(words[1]), int(words[1]) + self.length)] if words[0] == numbers else []
        elif self.kind == "striped":
            each = self.length // int(words[0])
            pairs = zip(words[2::2], words[3::2], strict=False)
            places = [(int(begin), int(begin) + each) for device, begin in pairs if device == numbers]
        elif self.kind == "crypt":
            places = [(int(words[4]), int(words[4]) + self.length)] if words[3] == numbers else []
        elif numbers in self.devices:
            return None
        return places


def table(name: str) -> list[Target]:
    """Return the active table of a mapping, without keys; raises OSError if it cannot be read (only root may)."""
    return parse(_dmsetup("table", name))


def status(name: str) -> list[Target]:
    """Return the state of each target of a mapping, in the form of a table; raises OSError.

    Without --noflush, a thin pool would write its records each time (thin-pool.txt, Status).
    """
    return parse(_dmsetup("status", name, "--noflush"))


def parse(text: str) -> list[Target]:
    targets = []
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 3:
            targets.append(Target(int(fields[0]), int(fields[1]), fields[2], tuple(fields[3:])))
    return targets


def _dmsetup(command: str, name: str, *options: str) -> str:
    major, _, minor = (read_text(block_dir(name) / "dev") or "").partition(":")
    output = tools.run("dmsetup", command, *options, "--major", major, "--minor", minor)
    if output.status != 0:
        raise OSError(output.words)
    return output.stdout


@dataclass(frozen=True)
class Mapping:
    """A mapping with its active table."""

    name: str
    numbers: str
    table: tuple[Target, ...]

    def kinds(self) -> set[str]:
        return {target.kind for target in self.table}


def read(name: str, sys_root: Path = Path("/sys")) -> Mapping:
    """Return a mapping by its kernel name; raises OSError."""
    return Mapping(name, read_text(block_dir(name, sys_root) / "dev") or "", tuple(table(name)))


def unfit(subject: str, mappings: dict[str, Mapping]) -> str | None:
    """Return why the mappings of a subject's chain must not be written to, or None; `subject` is a kernel name."""
    pools = {mapping.numbers for mapping in mappings.values() if POOL in mapping.kinds()}
    for name, mapping in mappings.items():
        kinds = mapping.kinds()
        if not kinds:
            return f"{name} has no active table"
        if name == subject and POOL in kinds:
            return f"{name} is a thin pool, which holds the data of its volumes; name one of its thin volumes"
        if unknown := sorted(kinds - KNOWN):
            return f"the table of {name} has the target '{unknown[0]}', which drivelab does not test"
        for target in mapping.table:
            if target.kind != THIN and pools.intersection(target.devices):
                return f"{name} shows all data of a thin pool; name one of the pool's thin volumes"
    return None


def shared_blocks(own: Mapping, other: Mapping, below: str) -> bool:
    """Return whether two mappings use the same blocks of a device, given by its `major:minor`.

    Thin volumes of one pool have different numbers. A mapping of a pool as a whole, which LVM keeps beside the volumes,
    does not count: `unfit` refuses it as the subject.
    """
    for first in own.table:
        for second in other.table:
            if below not in first.devices or below not in second.devices:
                continue
            if first.kind == THIN:
                if second.kind == THIN and first.arguments[1] == second.arguments[1]:
                    return True
                continue
            places = first.extents(below), second.extents(below)
            if places[0] is None or places[1] is None:
                return True
            if any(a < d and c < b for a, b in places[0] for c, d in places[1]):
                return True
    return False
