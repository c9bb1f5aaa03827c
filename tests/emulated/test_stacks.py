"""The guard on drives in use by everything that the kernel can stack on them, also through other paths."""

from __future__ import annotations

from typing import Any

import pytest
from emulation.machine import Machine

pytestmark = pytest.mark.emulated

LVM, RAID, BCACHE = "a physical volume of LVM", "a member of a RAID", "a device of bcache"
EXCLUSIVELY = "the kernel or another process holds it exclusively"
FREE = ""
"""Used instead of a reason if the guard approves."""

REASONS = {
    ("mounted", "EMU-A"): ("is mounted on /mnt", FREE),
    ("mounted in another mount namespace", "EMU-A"): (EXCLUSIVELY, FREE),
    ("unmounted lazily", "EMU-A"): (EXCLUSIVELY, FREE),
    ("partition mounted", "EMU-A"): ("p2 is mounted on /mnt", FREE),
    ("logical volume on a partition", "EMU-A"): ("p2 is held by dm-0", FREE),
    ("inactive volume group on a partition", "EMU-A"): (f"p2 is {LVM}", FREE),
    ("logical volume mounted", "EMU-A"): ("is held by dm-0", LVM),
    ("logical volume active", "EMU-A"): ("is held by dm-0", LVM),
    ("md member", "EMU-A"): ("is held by md0", RAID),
    ("md member", "EMU-B"): ("is held by md0", RAID),
    ("dm-crypt", "EMU-A"): ("is held by dm-0", FREE),
    ("dm-linear", "EMU-A"): ("is held by dm-0", FREE),
    ("device mapper table not active", "EMU-A"): ("is held by dm-0", FREE),
    ("bcache", "EMU-A"): ("is held by bcache0", BCACHE),
    ("bcache", "EMU-B"): ("is held by bcache0", BCACHE),
    ("bcache cache alone", "EMU-A"): ("it is registered with bcache", BCACHE),
    ("btrfs of two", "EMU-A"): ("is mounted on /mnt", "a member of a btrfs"),
    ("btrfs of two", "EMU-B"): ("is a member of the mounted btrfs", "a member of a btrfs"),
    ("external journal", "EMU-A"): (EXCLUSIVELY, "the journal of a file system on another drive"),
    ("external journal", "EMU-B"): ("is mounted on /mnt", FREE),
    ("image of a sleeping host", "EMU-A"): ("the image of a hibernated host", "the image of a hibernated host"),
    ("loop device", "EMU-A"): ("loop0 is a loop device over it", FREE),
    ("loop device over a deleted node", "EMU-A"): ("loop0 is a loop device over it", FREE),
    ("NVMe target", "EMU-A"): ("exported to other hosts by the NVMe target", FREE),
    ("NVMe target by another node", "EMU-A"): ("exported to other hosts by the NVMe target", FREE),
    ("LIO target", "EMU-A"): ("exported to other hosts by the LIO target (core/fileio_0/disk)", FREE),
    ("LIO target in a hidden configfs", "EMU-A"): ("mount -t configfs none /sys/kernel/config", FREE),
    ("process", "EMU-A"): ("(sleep) has /dev/nvme", FREE),
    ("process by a deleted node", "EMU-A"): ("(sleep) has /run/private (deleted) open for writing", FREE),
    ("process by the ng device", "EMU-A"): ("(sleep) has /dev/ng", FREE),
    ("process by the sg device", "EMU-SCSI"): ("(sleep) has /dev/sg", FREE),
    ("process by the bsg device", "EMU-SCSI"): ("(sleep) has /dev/bsg/", FREE),
    ("process by a mapping", "EMU-A"): ("mapped for writing", FREE),
    ("multipath of the device mapper", "EMU-SCSI"): ("is held by dm-0", FREE),
    ("SCSI path mounted", "EMU-SCSI"): ("sdb is mounted on /mnt", FREE),
    ("SCSI path open", "EMU-SCSI"): (f"sdb is the same drive, and {EXCLUSIVELY}", FREE),
    ("SCSI path by the sg device", "EMU-SCSI"): ("(sleep) has /dev/sg", FREE),
    ("NVMe path mounted", "EMU-SHARED"): ("is mounted on /mnt", FREE),
    ("NVMe path with a mounted partition", "EMU-SHARED"): ("p2 is mounted on /mnt", FREE),
    ("NVMe path is swap", "EMU-SHARED"): ("is swap space", FREE),
    ("NVMe path mapped", "EMU-SHARED"): ("is held by dm-0", FREE),
    ("NVMe path has a volume", "EMU-SHARED"): ("is held by dm-0", LVM),
    ("NVMe path with a loop device", "EMU-SHARED"): ("loop0 is a loop device over it", FREE),
    ("NVMe path exported", "EMU-SHARED"): ("exported to other hosts by the NVMe target", FREE),
    ("NVMe path written by a process", "EMU-SHARED"): ("(sleep) has /dev/nvme", FREE),
}
"""By use and drive: the reason of the refusal during the use, and when only the signatures are left."""


@pytest.fixture(scope="module")
def observed(stacked: Machine) -> dict[str, dict[str, Any]]:
    """The guard's verdicts on each drive in each use; see guest/stacks.py."""
    result: dict[str, dict[str, Any]] = stacked.run("python3 /guest/stacks.py", 900).json()
    return result


def test_every_use_has_its_reasons(observed: dict[str, dict[str, Any]]) -> None:
    assert set(observed) == {use for use, _ in REASONS}


@pytest.mark.parametrize(("use", "serial"), REASONS)
def test_drive_in_use_is_refused_and_unchanged(observed: dict[str, dict[str, Any]], use: str, serial: str) -> None:
    """After the use it is refused only for its signatures; wiped, it is approved."""
    assert "trouble" not in observed[use], observed[use]["trouble"]
    states, (during, left) = observed[use][serial], REASONS[use, serial]
    assert states["during"].startswith("refused: ")
    assert during in states["during"]
    assert states["written"] == [0, 0]
    assert states["left"].startswith("refused: ") == (left != FREE)
    assert left in states["left"]
    assert not states.get("wiped", states["left"]).startswith("refused: ")
