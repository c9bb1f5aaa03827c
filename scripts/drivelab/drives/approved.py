"""A block device that the guard has approved. Only `drivelab.drives.guard` creates these values."""

from __future__ import annotations

from dataclasses import dataclass, field

from drivelab.drives.identified import Identity
from drivelab.drives.neighbours import Neighbours
from drivelab.drives.node import Node
from drivelab.plan.subject_kinds import DRIVE


@dataclass(frozen=True)
class ApprovedDevice:
    """A block device that the guard has checked."""

    device: str
    """/dev node, for people and for programs that only read."""
    name: str
    """Kernel name, such as `nvme0n1`."""
    serial: str
    """As in the sheet: of a drive the serial number, of other kinds the identifier that pins it."""
    virtual: str | None
    identity: Identity = field(kw_only=True)
    """As it was when the guard opened the device."""
    kind: str = field(default=DRIVE.name, kw_only=True)
    disks: tuple[str, ...] = field(default=(), kw_only=True)
    """Kernel names of the disks below a partition, volume or array; empty for others."""


@dataclass(frozen=True)
class HeldDevice(ApprovedDevice):
    """A writable block device: approved, and kept open by this process."""

    node: Node
    neighbours: Neighbours | None = field(default=None, kw_only=True, compare=False)
    """Parts of the drive beside a partition, which must stay unchanged; None for other kinds."""

    @property
    def path(self) -> str:
        """Path of exactly this device, for this process and for programs that inherit the node's descriptor."""
        return self.node.path
