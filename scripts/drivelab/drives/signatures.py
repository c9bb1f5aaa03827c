"""Read signatures on a drive: file systems, partition tables, members of arrays or pools not assembled now."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, replace
from pathlib import Path

from drivelab.drives import tools

MEMBERS = {
    "LVM2_member": "a physical volume of LVM",
    "LVM1_member": "a physical volume of LVM",
    "zfs_member": "a member of a ZFS pool",
    "btrfs": "a member of a btrfs",
    "bcache": "a device of bcache",
    "bcachefs": "a member of a bcachefs",
    "jbd": "the journal of a file system on another drive",
    "xfs_external_log": "the log of a file system on another drive",
    "swsuspend": "the image of a hibernated host",
    "stratis": "a member of a Stratis pool",
    "vdo": "a device of VDO",
    "DM_snapshot_cow": "a device mapper snapshot",
    "DM_integrity": "a device of dm-integrity",
    "DM_verity_hash": "a device of dm-verity",
    "oracleasm": "a disk of Oracle ASM",
    "drbdmanage_control_volume": "a device of DRBD",
    "drbdproxy_datalog": "a device of DRBD",
    "gfs": "a file system that other hosts may have mounted",
    "gfs2": "a file system that other hosts may have mounted",
    "ocfs": "a file system that other hosts may have mounted",
    "ocfs2": "a file system that other hosts may have mounted",
    "mpool": "a device of mpool",
    "drbd": "a device of DRBD",
    "ceph_bluestore": "a device of Ceph",
    "VMFS_volume_member": "a member of a VMFS volume",
}
"""What other drives or hosts may need or use, by libblkid's names; RAID members end in `_raid_member`."""

_BTRFS_SUPER_BYTES, _SUPER_BYTES = 64 << 10, 4096
"""Place and size of the first superblock of btrfs."""
_FLAGS_AT, _MAGIC_AT, _DEVICES_AT, _SEEDING = 0x38, 0x40, 0x88, 1 << 32


@dataclass(frozen=True)
class Signature:
    """One signature, as wipefs(8) names it."""

    node: str
    """Kernel name of the drive or partition that has it."""
    kind: str
    label: str
    alone: bool = False
    """Whether it is a btrfs of this device only, so that no other drive needs it."""

    @property
    def words(self) -> str:
        return f"{self.kind} '{self.label}' on {self.node}" if self.label else f"{self.kind} on {self.node}"

    @property
    def membership(self) -> str | None:
        """What the device is a member of, in words; None for a self-contained signature."""
        if self.kind.endswith("_raid_member"):
            return "a member of a RAID"
        if self.alone:
            return None
        return MEMBERS.get(self.kind)


def read(nodes: list[str]) -> list[Signature]:
    """Return all signatures on devices, given by kernel name; writes nothing.

    All, not only libblkid's first match: somebody may still need the data under a newer partition table.
    Raises OSError, with the program's message, if a device cannot be read.
    """
    signatures: list[Signature] = []
    for node in nodes:
        output = tools.run("wipefs", "--json", "--no-act", f"/dev/{node}")
        if output.status != 0:
            raise OSError(output.words)
        signatures += [_judged(signature) for signature in parse(output.stdout)]
    return signatures


def _judged(signature: Signature) -> Signature:
    if signature.kind != "btrfs":
        return signature
    with Path(f"/dev/{signature.node}").open("rb") as device:
        device.seek(_BTRFS_SUPER_BYTES)
        return replace(signature, alone=is_alone(device.read(_SUPER_BYTES)))


def is_alone(superblock: bytes) -> bool:
    """Return whether a superblock of btrfs says that its file system is on one device, and is no seed of others.

    Source: fs/btrfs/fs.h and include/uapi/linux/btrfs_tree.h, struct btrfs_super_block.
    """
    (flags,), (devices,) = (struct.unpack_from("<Q", superblock, at) for at in (_FLAGS_AT, _DEVICES_AT))
    return bool(superblock[_MAGIC_AT : _MAGIC_AT + 8] == b"_BHRfS_M" and devices == 1 and not flags & _SEEDING)


def parse(text: str) -> list[Signature]:
    """Parse the JSON of wipefs, which prints nothing for a device without signatures."""
    rows = json.loads(text)["signatures"] if text.strip() else []
    return [Signature(row["device"], row["type"], row.get("label") or "") for row in rows]


def membership(nodes: list[str]) -> str | None:
    """Return which device, given by kernel name, other drives or hosts may need, and why; None if none is needed."""
    try:
        written = read(nodes)
    except OSError as error:
        return f"its signatures cannot be read ({error})"
    for signature in written:
        if signature.membership is not None:
            return (
                f"{signature.node} is {signature.membership} ({signature.kind}), which other drives may need; "
                f"wipefs --all /dev/{signature.node} removes it"
            )
    return None
