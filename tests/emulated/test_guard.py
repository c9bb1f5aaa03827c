"""The guard on a real kernel: a drive in every state in which it must not be written to."""

from __future__ import annotations

import pytest
from emulation.machine import Machine

pytestmark = pytest.mark.emulated


@pytest.fixture(scope="module")
def verdicts(bench: Machine) -> dict[str, str]:
    """The guard's verdicts on the NVMe drive with 4 KiB blocks, by the drive's state."""
    path = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_EMU"
    by_state: dict[str, str] = bench.run(
        f"python3 /guest/guard.py {path}-NATIVE-4K EMU-NATIVE-4K {path}-FLASH", 120
    ).json()
    return by_state


@pytest.mark.parametrize("state", ["free", "file system that is not mounted", "partitioned", "free again"])
def test_approved(verdicts: dict[str, str], state: str) -> None:
    assert verdicts[state].startswith("nvme")


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("wrong serial", "has serial EMU-NATIVE-4K"),
        ("not destructive", "destructive: no"),
        ("other drive at the path", "has serial EMU-FLASH"),
        ("missing", "is not attached"),
        ("mounted", "is mounted on /mnt"),
        ("partition", "partition"),
        ("partition mounted", "is mounted on /mnt"),
        ("partition is swap", "is swap space"),
        ("swap", "is swap space"),
        ("device mapper", "is held by dm-0"),
        ("held exclusively", "exclusively"),
    ],
)
def test_refused(verdicts: dict[str, str], state: str, reason: str) -> None:
    assert verdicts[state].startswith("refused: ")
    assert reason in verdicts[state]


def test_drive_without_serial_is_refused(bench: Machine) -> None:
    node = bench.run("grep -L EMU /sys/class/block/nvme*n1/device/serial").stdout.split("/")[4]
    assert "has no serial number" in bench.run(f"python3 /guest/approve.py /dev/{node} ''").stdout
