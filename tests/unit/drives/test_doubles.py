"""Several devices that report one serial number, on fake sysfs trees: one drive, or different drives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from storage_places import Place

from drivelab.drives import doubles, identified
from drivelab.drives.identified import Identity

NAA = "naa.5000c50012345678"
T10 = "t10.QEMU    QEMU HARDDISK   S1"
"""Only repeats the vendor, model and serial number."""


def disk(
    tree: Place, name: str, bus: str, *, serial: str = "S1", wwid: str = "", model: str = "Fast 1", sectors: int = 2048
) -> str:
    """Add a drive whose `device` link leads to a folder on a bus."""
    tree.disk(name, bus, size=str(sectors), device__model=model, **({"device__wwid": wwid} if wwid else {}))
    (tree.directory(name) / "device/vpd_pg80").write_bytes(b"\0\x80\0\x08" + serial.encode().rjust(8))
    return name


def namespace(tree: Place, name: str, subsystem: str, *, wwid: str = "", number: int = 1, sectors: int = 2048) -> str:
    """Add a namespace of the controller in its name, which belongs to an NVM subsystem."""
    controller = tree.sys / "devices/pci" / name[: name.index("n", 4)]
    controller.mkdir(parents=True, exist_ok=True)
    (controller / "serial").write_text("S1      \n")
    (controller / "model").write_text("Fast 1      \n")
    folder = tree.sys / "devices/virtual" / name
    tree.node(name, folder, {"size": str(sectors), "nsid": str(number), "wwid": wwid})
    (folder / "device").symlink_to(controller)
    link = tree.sys / "class/nvme-subsystem" / subsystem / controller.name
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.exists():
        link.symlink_to(controller)
    return name


def reason(tree: Place, name: str, kind: str = "drive", serial: str = "S1") -> str | None:
    return doubles.with_same_serial(name, serial, kind, tree.sys, tree.sys)


def virtio(tree: Place) -> None:
    for name, sectors in (("vda", "2048"), ("vdb", "4096")):
        tree.virtual(name, serial="S1", size=sectors)


def disks(one: dict[str, Any], other: dict[str, Any]) -> Callable[[Place], None]:
    """Return a function that adds sda and sdb to a tree; keywords are those of `disk`."""

    def make(tree: Place) -> None:
        disk(tree, "sda", **one)
        disk(tree, "sdb", **other)

    return make


A, B = {"bus": "sas/host1/a", "wwid": NAA}, {"bus": "sas/host1/b", "wwid": NAA}
DIFFERENT = {
    "two enclosures whose bridges report the same numbers": ({**A, "bus": "usb1/host1"}, {**B, "bus": "usb2/host2"}),
    "a clone with everything the same": ({**A, "bus": "pci/ata1/host1"}, {**B, "bus": "pci/ata2/host2"}),
    "another capacity": (A, {**B, "sectors": 4096}),
    "another model": (A, {**B, "model": "Slow 2"}),
    "another name": (A, {**B, "wwid": "naa.5000c50012345679"}),
    "names that repeat the numbers": ({**A, "wwid": T10}, {**B, "wwid": T10}),
    "a number of zeros": ({**A, "wwid": "naa.5000000000000000"}, {**B, "wwid": "naa.5000000000000000"}),
    "no names": ({**A, "wwid": ""}, {**B, "wwid": ""}),
}


def other_bus(tree: Place) -> None:
    disk(tree, "sda", "sas/host1/a", wwid=NAA)
    namespace(tree, "nvme0n1", "nvme-subsys0", wwid="eui.1")


def nvme_clones(tree: Place) -> None:
    """Without identifiers of their own, the kernel names both after vendor, serial number and model."""
    for number in (0, 1):
        namespace(tree, f"nvme{number}n1", f"nvme-subsys{number}", wwid="nvme.1234-5331-46617374-00000001")


def only_udev_knows(tree: Place) -> None:
    for name in ("sda", "sdb"):
        tree.virtual(name, size="2048")
        (tree.sys / f"b{tree.number(name)}").write_text("E:ID_SERIAL_SHORT=S1\n")


@pytest.mark.parametrize("make", [
    virtio, other_bus, nvme_clones, only_udev_knows,
    *(pytest.param(disks(*both), id=name) for name, both in DIFFERENT.items()),
])  # fmt: skip
def test_different_drives_with_one_serial_number_are_found(make: Callable[[Place], None], tmp_path: Path) -> None:
    make(tree := Place(tmp_path))
    first, second = tree.nodes
    for one, other in ((first, second), (second, first)):
        words = reason(tree, one)
        assert words is not None
        assert words.startswith(f"/dev/{one} (")
        assert f" and /dev/{other} (" in words
        assert words.endswith("both report the serial number S1")


def test_the_reason_tells_the_drives_apart(tmp_path: Path) -> None:
    disks(*DIFFERENT["another capacity"])(tree := Place(tmp_path))
    assert reason(tree, "sda") == (
        "/dev/sda (Fast 1, 1 MiB) and /dev/sdb (Fast 1, 2 MiB) both report the serial number S1"
    )


two_paths = disks(A, {**B, "bus": "sas/host2/a"})


def legs_of_multipath(tree: Place) -> None:
    two_paths(tree)
    whole = tree.composed("dm", "sda", "sdb", uuid="mpath-35000c50012345678")
    (tree.directory(whole) / "serial").write_text("S1\n")


def namespaces_of_one_controller(tree: Place) -> None:
    namespace(tree, "nvme0n1", "nvme-subsys0", wwid="eui.1")
    namespace(tree, "nvme0n2", "nvme-subsys0", wwid="eui.2", number=2, sectors=4096)


def paths_of_native_multipath(tree: Place) -> None:
    namespace(tree, "nvme0n1", "nvme-subsys0", wwid="eui.1")
    for path in ("nvme0c0n1", "nvme0c1n1"):
        tree.virtual(path, hidden="1", size="2048")
        (tree.directory(path) / "device").symlink_to(tree.sys / "devices/pci/nvme0")


def two_controllers_of_one_subsystem(tree: Place) -> None:
    """As without native multipath."""
    namespace(tree, "nvme0n1", "nvme-subsys0", wwid="eui.1")
    namespace(tree, "nvme1n1", "nvme-subsys0", wwid="eui.1")


def partitions(tree: Place) -> None:
    disk(tree, "sda", "pci/ata1/host1", wwid=NAA)
    for number in (1, 2):
        part = tree.add(f"sda{number}", inside="sda")
        (tree.sys / f"b{tree.number(part)}").write_text("E:ID_SERIAL_SHORT=S1\n")


def something_on_it(tree: Place) -> None:
    disk(tree, "sda", "pci/ata1/host1", wwid=NAA)
    above = tree.stack("sda", "md")
    (tree.sys / f"b{tree.number(above)}").write_text("E:ID_SERIAL_SHORT=S1\n")


empty_slot = disks({"bus": "usb1/host1/0"}, {"bus": "usb1/host1/1", "sectors": 0})
"""A card reader reports its own serial number for each slot."""


other_serial = disks({**A, "bus": "usb1/host1"}, {**B, "bus": "usb2/host2", "serial": "S2"})


@pytest.mark.parametrize("make", [
    two_paths, legs_of_multipath, namespaces_of_one_controller, paths_of_native_multipath,
    two_controllers_of_one_subsystem, partitions, something_on_it, empty_slot, other_serial,
])  # fmt: skip
def test_one_drive_under_several_names_is_one_drive(make: Callable[[Place], None], tmp_path: Path) -> None:
    make(tree := Place(tmp_path))
    assert reason(tree, tree.nodes[0]) is None


def test_what_is_on_a_drive_is_no_other_drive(tmp_path: Path) -> None:
    partitions(tree := Place(tmp_path))
    (tree.sys / f"b{tree.number(above := tree.stack('sda', 'md'))}").write_text("E:ID_SERIAL_SHORT=S1\n")
    assert [reason(tree, node) for node in ("sda1", above)] == [None, None]


def test_a_namespace_is_pinned_by_its_identifier(tmp_path: Path) -> None:
    namespaces_of_one_controller(tree := Place(tmp_path))
    assert reason(tree, "nvme0n1", "namespace", "eui.1") is None
    namespace(tree, "nvme1n1", "nvme-subsys1", wwid="eui.1")
    words = reason(tree, "nvme0n1", "namespace", "eui.1")
    assert words is not None
    assert words.endswith("both report the identifier eui.1")


def test_an_identity_is_read_from_sysfs(tmp_path: Path) -> None:
    tree = Place(tmp_path)
    disk(tree, "sda", "sas/host1/a", wwid=f"{T10}  ")
    namespace(tree, "nvme0n1", "nvme-subsys0", wwid="eui.1")
    of_disk = identified.read("sda", "S1", (), tree.sys)
    assert of_disk == Identity("S1", 1 << 20, "Fast 1", "t10.QEMU QEMU HARDDISK S1")
    of_namespace = identified.read("nvme0n1", "S2", (), tree.sys)
    assert of_namespace == Identity("S2", 1 << 20, "Fast 1", "eui.1")
    array = tree.composed("md", "sda", "nvme0n1")
    (tree.directory(array) / "size").write_text("4096\n")
    found = identified.read(array, "U", [("nvme0n1", "S2"), ("sda", "S1")], tree.sys)
    assert found == Identity("U", 2 << 20, disks=(of_disk, of_namespace))
    assert Identity.from_mapping(found.to_mapping()) == found


def test_the_paths_of_a_multipath_disk_are_one_disk(tmp_path: Path) -> None:
    legs_of_multipath(tree := Place(tmp_path))
    found = identified.read("dm-2", "mpath-x", [("sda", "S1"), ("sdb", "S1")], tree.sys)
    assert found.disks == (Identity("S1", 1 << 20, "Fast 1", NAA),)


def test_a_firmware_update_changes_no_identity(tmp_path: Path) -> None:
    tree = Place(tmp_path)
    disk(tree, "sda", "sas/host1/a", wwid=NAA)
    (tree.sys / "devices/sas/host1/a/rev").write_text("1.0\n")
    before = identified.read("sda", "S1", (), tree.sys)
    (tree.sys / "devices/sas/host1/a/rev").write_text("2.0\n")
    assert before.changes(identified.read("sda", "S1", (), tree.sys)) == []
    assert before.changes(replace(before, model=None)) == ["model Fast 1 → none"]
