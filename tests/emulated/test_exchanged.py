"""Drives behind the wrong name: replaced nodes, and a drive that is swapped while the guard checks it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from emulation.machine import Machine

pytestmark = pytest.mark.emulated


@dataclass(frozen=True)
class Drive:
    """An NVMe drive of the machine."""

    serial: str
    by_id: str
    node: str
    numbers: str
    """Major and minor, in the form for mknod."""


def drive(machine: Machine, serial: str) -> Drive:
    by_id = f"/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_{serial}_1"
    node = machine.run(f"readlink -f {by_id}").stdout.strip()
    numbers = machine.run(f"tr : ' ' < /sys/class/block/{node.rpartition('/')[2]}/dev").stdout.strip()
    return Drive(serial, by_id, node, numbers)


def written(machine: Machine, target: Drive) -> list[str]:
    """Return the sectors written and discarded according to the kernel (Documentation/block/stat.rst)."""
    machine.run("sync; udevadm settle")
    return machine.run(f"awk '{{print $7, $14}}' /sys/class/block/{target.node.rpartition('/')[2]}/stat").stdout.split()


@pytest.fixture
def pair(stacked: Machine) -> Iterator[tuple[Drive, Drive]]:
    """The drive of the sheet and another drive; restores the first drive's node."""
    own, other = drive(stacked, "EMU-C"), drive(stacked, "EMU-D")
    yield own, other
    stacked.run(f"rm -f {own.node} /dev/nvme99n1; mknod {own.node} b {own.numbers}")


@pytest.mark.parametrize(("path", "method"), [("by-id", "trim"), ("node", "overwrite")])
def test_node_with_the_number_of_another_drive_is_refused(
    stacked: Machine, pair: tuple[Drive, Drive], path: str, method: str
) -> None:
    own, other = pair
    before = written(stacked, own), written(stacked, other)
    stacked.run(f"rm {own.node}; mknod {own.node} b {other.numbers}")
    result = stacked.run(
        f"python3 /guest/purge.py {own.by_id if path == 'by-id' else own.node} {own.serial} {method}", 120
    ).json()
    assert (written(stacked, own), written(stacked, other)) == before
    assert "error" in result


def test_node_with_an_unknown_name_is_refused(stacked: Machine, pair: tuple[Drive, Drive]) -> None:
    own, other = pair
    before = written(stacked, other)
    stacked.run(f"mknod /dev/nvme99n1 b {other.numbers}")
    assert "error" in stacked.run(f"python3 /guest/purge.py /dev/nvme99n1 {own.serial} trim").json()
    assert written(stacked, other) == before


def test_drive_with_a_restored_node_is_purged(stacked: Machine, pair: tuple[Drive, Drive]) -> None:
    own, other = pair
    stacked.run(f"rm {own.node}; mknod {own.node} b {other.numbers}; rm {own.node}; mknod {own.node} b {own.numbers}")
    before = written(stacked, other)
    assert "error" not in stacked.run(f"python3 /guest/purge.py {own.by_id} {own.serial} trim", 300).json()
    assert written(stacked, other) == before


def test_drive_swapped_between_check_and_use_is_refused(stacked: Machine) -> None:
    pulled = drive(stacked, "EMU-PULLED")
    stacked.start("purge", f"python3 /guest/exchanged.py {pulled.by_id} EMU-PULLED trim")
    stacked.run("until [ -e /run/looked ] || [ -s /tmp/purge.status ]; do sleep 0.1; done")
    stacked.unplug("nvme-pulled")
    stacked.run(f"udevadm settle; until [ ! -e {pulled.by_id} ]; do sleep 0.1; done")
    stacked.monitor.execute("device_add", driver="nvme", id="nvme-spare", drive="spare", serial="EMU-SPARE")
    stacked.run(f"until [ -e {pulled.by_id.replace('PULLED', 'SPARE')} ]; do sleep 0.1; done; udevadm settle")
    spare = drive(stacked, "EMU-SPARE")
    stacked.run("touch /run/exchanged")
    result = stacked.finish("purge", 300).json()
    assert written(stacked, spare) == ["0", "0"]
    assert "error" in result


def test_another_drive_with_the_same_serial_number_is_not_erased(stacked: Machine) -> None:
    """After consent to one drive, the link leads to another one with a file system, and then only to that."""
    path = "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_EMU-CLONED"
    use = f"python3 /guest/same_serial.py {path} EMU-CLONED"

    def plug(name: str) -> set[str]:
        stacked.monitor.execute("device_add", driver="scsi-hd", bus="scsi.0", id=name, drive=name, serial="EMU-CLONED")
        stacked.run(f"udevadm settle; until [ -e {path} ]; do sleep 0.1; done; udevadm settle")
        reporting = stacked.run("grep -l EMU-CLONED /sys/class/block/sd*/device/vpd_pg80").stdout.split()
        return {file.split("/")[4] for file in reporting}

    (cloned,) = plug("cloned")
    assert stacked.run(f"{use} --yes").stdout.strip() == cloned
    assert stacked.run(use).stdout.strip() == cloned
    (clone,) = plug("clone") - {cloned}
    stacked.run(f"mke2fs -q -F -t ext4 -E lazy_itable_init=0 /dev/{clone}; sync; udevadm settle")
    content = f"dd if=/dev/{clone} bs=1M iflag=direct 2>/dev/null | md5sum"
    before = stacked.run(content).stdout
    try:
        both = stacked.run(f"{use} --yes").stdout
        assert both.startswith("refused: ")
        assert "both report the serial number EMU-CLONED" in both
        for words in (f"/dev/{cloned} (QEMU HARDDISK, 32 MiB)", f"/dev/{clone} (QEMU HARDDISK, 48 MiB)"):
            assert words in both
        stacked.unplug("cloned")
        stacked.run(f"udevadm settle; until [ $(readlink -f {path}) = /dev/{clone} ]; do sleep 0.1; done")
        alone = stacked.run(use).stdout
        assert alone.startswith("refused: ")
        assert "capacity 33,554,432 bytes → 50,331,648 bytes" in alone
        assert stacked.run(content).stdout == before
        assert stacked.run(f"{use} --yes").stdout.strip() == clone
    finally:
        stacked.unplug("clone")
