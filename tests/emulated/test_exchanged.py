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
