"""What tells a subject from another one with the same serial number; consent and seals are bound to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from drivelab.drives.sysfs import block_dir, capacity_bytes, read_text


@dataclass(frozen=True)
class Identity:
    """Everything by which a drive, partition, volume or array is recognised; None where it reports nothing.

    A firmware update changes none of it.
    """

    serial: str
    """As in the sheet: of a drive the serial number, of other kinds the identifier that pins it."""
    capacity_bytes: int
    model: str | None = None
    wwid: str | None = None
    """The world-wide name, such as `eui.…` or `naa.…`."""
    disks: tuple[Identity, ...] = ()
    """Of the disks below a subject that is no drive, one for each drive, by serial number."""

    def to_mapping(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_mapping(cls, body: Mapping[str, Any]) -> Identity:
        """Raises TypeError or KeyError for a mapping of another form."""
        if not isinstance(body["capacity_bytes"], int) or not isinstance(body["serial"], str):
            raise TypeError("capacity_bytes is not a whole number, or serial is no text")
        return cls(**{**body, "disks": tuple(map(cls.from_mapping, body["disks"]))})

    def changes(self, now: Identity) -> list[str]:
        """Return in words what differs from `now`, each with the old and the new value."""
        fields = {
            "serial number": (self.serial, now.serial),
            "capacity": (f"{self.capacity_bytes:,} bytes", f"{now.capacity_bytes:,} bytes"),
            "model": (self.model, now.model),
            "world-wide name": (self.wwid, now.wwid),
        }
        found = [f"{name} {old or 'none'} → {new or 'none'}" for name, (old, new) in fields.items() if old != new]
        before, after = ({disk.serial: disk for disk in side.disks} for side in (self, now))
        found += [f"disk {serial} no longer below it" for serial in before if serial not in after]
        found += [f"disk {serial} now below it" for serial in after if serial not in before]
        for serial in before.keys() & after.keys():
            found += [f"{change} of disk {serial}" for change in before[serial].changes(after[serial])]
        return found


def read(name: str, serial: str, disks: Iterable[tuple[str, str]] = (), sys_root: Path = Path("/sys")) -> Identity:
    """Return the identity of a device, from sysfs; `disks` are kernel name and serial number of each disk below.

    The paths of a multipath disk are one disk.
    """
    directory = block_dir(name, sys_root)
    below = {read(disk, of_disk, (), sys_root) for disk, of_disk in disks}
    return Identity(
        serial,
        capacity_bytes(name, sys_root),
        _first(directory, "device/model", "device/name"),  # of a flash card: name
        _first(directory, "wwid", "device/wwid"),
        tuple(sorted(below, key=lambda disk: (disk.serial, str(disk)))),
    )


def _first(directory: Path, *files: str) -> str | None:
    return next((" ".join(text.split()) for file in files if (text := read_text(directory / file))), None)
