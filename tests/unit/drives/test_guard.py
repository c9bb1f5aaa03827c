"""The guard against sysfs trees made for the purpose: whatever holds a device must be found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drivelab.config.drives_sheet import SheetRow
from drivelab.drives import guard, holders
from drivelab.drives.signatures import MEMBERS, Signature, parse
from drivelab.errors import UserError


class Tree:
    """A pretended /sys and /proc of a host whose system is on `system`; drives and what stands on them are added."""

    def __init__(self, root: Path, partitions: dict[str, int]) -> None:
        self.host = holders.Host(root / "sys", root / "proc")
        self._sys, self._proc = root / "sys", root / "proc"
        for folder in ("class/block", "dev/block", "block", "fs/btrfs"):
            (self._sys / folder).mkdir(parents=True)
        (self._proc / "self").mkdir(parents=True)
        (self._proc / "swaps").write_text("Filename Type Size Used Priority\n")
        (self._proc / "self/mountinfo").write_text("1 0 0:1 / /proc rw - proc proc rw\n")
        self.nodes: list[str] = []
        for drive, count in partitions.items():
            self.add(drive)
            for number in range(1, count + 1):
                separator = "p" if drive[-1].isdigit() else ""
                self.add(f"{drive}{separator}{number}", inside=drive)

    def directory(self, node: str) -> Path:
        return (self._sys / "class/block" / node).resolve()

    def add(self, node: str, inside: str | None = None) -> str:
        directory = (self.directory(inside) if inside else self._sys / "devices/pci/block") / node
        for folder in ("holders", "slaves"):
            (directory / folder).mkdir(parents=True)
        numbers = f"99:{len(self.nodes)}"
        (directory / "dev").write_text(f"{numbers}\n")
        (directory / "ro").write_text("0\n")
        if inside:
            (directory / "partition").write_text("1\n")
        (self._sys / "class/block" / node).symlink_to(directory)
        (self._sys / "dev/block" / numbers).symlink_to(directory)
        self.nodes.append(node)
        return node

    def stack(self, below: str, kind: str = "dm") -> str:
        """A mapping or array on a node: sysfs links both ways."""
        above = self.add(f"{kind}-{len(self.nodes)}")
        (self.directory(above) / kind).mkdir()
        (self.directory(above) / "slaves" / below).symlink_to(self.directory(below))
        (self.directory(below) / "holders" / above).symlink_to(self.directory(above))
        return above

    def mount(self, node: str, where: str = "/mnt/my\\040data", numbers: str | None = None, kind: str = "ext4") -> None:
        numbers = numbers or (self.directory(node) / "dev").read_text().strip()
        with (self._proc / "self/mountinfo").open("a") as file:
            file.write(f"30 1 {numbers} / {where} rw shared:1 - {kind} /dev/{node} rw\n")

    def swap(self, node: str) -> None:
        with (self._proc / "swaps").open("a") as file:
            file.write(f"/dev/{node} partition 100 0 -2\n")

    def btrfs(self, node: str) -> None:
        devices = self._sys / "fs/btrfs/1d2c-uuid/devices"
        devices.mkdir(parents=True, exist_ok=True)
        (devices / node).symlink_to(self.directory(node))

    def loop(self, node: str) -> None:
        backing = self._sys / "block/loop9/loop"
        backing.mkdir(parents=True)
        (backing / "backing_file").write_text(f"/dev/{node}\n")

    def twin(self, node: str) -> str:
        """A second path to the drive of a node, with as many partitions."""
        drive = self.directory(node)
        drive = drive.parent if (drive / "partition").exists() else drive
        other = self.add(f"twin{len(self.nodes)}")
        for path in (drive, self.directory(other)):
            (path / "wwid").write_text(f"naa.5000-{drive.name}\n")
        return self.add(f"{other}p1", inside=other)

    def export(self, node: str) -> None:
        folder = self._sys / "kernel/config/nvmet/subsystems/nqn.x/namespaces/1"
        folder.mkdir(parents=True)
        (folder / "device_path").write_text(f"/dev/{node}\n")

    def opened(self, node: str, flags: str = "0100002", pid: int = 4711) -> None:
        process = self._proc / str(pid)
        (process / "fd").mkdir(parents=True)
        (process / "fdinfo").mkdir()
        (process / "comm").write_text("qemu-system-x86\n")
        (process / "fd/7").symlink_to(f"/dev/{node}")
        (process / "fdinfo/7").write_text(f"pos:\t0\nflags:\t{flags}\nmnt_id:\t5\n")

    def holder(self, name: str) -> str | None:
        return holders.holder(name, self.host)


def on_stack(mounting: Callable[[Tree, str], None], kind: str) -> Callable[[Tree, str], None]:
    return lambda tree, node: mounting(tree, tree.stack(node, kind))


def on_twin(use: Callable[[Tree, str], None]) -> Callable[[Tree, str], None]:
    return lambda tree, node: use(tree, tree.twin(node))


WAYS: dict[str, Callable[[Tree, str], None]] = {
    "mount": Tree.mount,
    "mount of a btrfs, whose numbers are no device's": lambda tree, node: tree.mount(node, numbers="0:45"),
    "swap": Tree.swap,
    "device mapper": lambda tree, node: tree.stack(node) and None,
    "md": lambda tree, node: tree.stack(node, "md") and None,
    "mount on device mapper": on_stack(Tree.mount, "dm"),
    "swap on md": on_stack(Tree.swap, "md"),
    "second device of a btrfs": Tree.btrfs,
    "loop device": Tree.loop,
    "a writing process": Tree.opened,
    "a target": Tree.export,
    "mount through another path": on_twin(Tree.mount),
    "swap through another path": on_twin(Tree.swap),
    "root file system through another path": on_twin(lambda tree, node: tree.mount(node, "/")),
    "the root file system": lambda tree, node: tree.mount(node, "/"),
    "the root file system through two mappings": lambda tree, node: tree.mount(tree.stack(tree.stack(node)), "/"),
    "read-only": lambda tree, node: (tree.directory("sdz") / "ro").write_text("1\n") and None,
}


@dataclass
class Situation:
    partitions: int
    use: list[tuple[int, str]] = field(default_factory=list)
    """Node by its number among drive and partitions, and how it is used."""
    use_of_others: list[str] = field(default_factory=list)


situations = st.builds(
    Situation,
    st.integers(0, 4),
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(sorted(WAYS))), max_size=2, unique_by=lambda one: one[1]),
    st.lists(st.sampled_from(sorted(set(WAYS) - {"read-only"})), max_size=2, unique=True),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None)
@given(situations)
def test_a_drive_is_accepted_only_if_nothing_uses_it(
    tmp_path_factory: pytest.TempPathFactory, situation: Situation
) -> None:
    tree = Tree(tmp_path_factory.mktemp("tree"), {"sdz": situation.partitions, "nvme3n1": 2})
    nodes = [node for node in tree.nodes if node.startswith("sdz")]
    used: set[str] = set()
    for index, way in situation.use:
        used.add(way)
        WAYS[way](tree, nodes[index % len(nodes)])
    for way in situation.use_of_others:
        if way not in used:
            WAYS[way](tree, "nvme3n1p1")
    assert (tree.holder("sdz") is not None) == bool(used)


@pytest.mark.parametrize("way", sorted(set(WAYS) - {"read-only"}))
@pytest.mark.parametrize("node", ["sdz", "sdz2"])
def test_the_reason_names_what_is_used(tmp_path: Path, way: str, node: str) -> None:
    tree = Tree(tmp_path, {"sdz": 2})
    WAYS[way](tree, node)
    reason = tree.holder("sdz")
    assert reason is not None
    assert node in reason or "over it" in reason or "carries / " in reason or "twin" in reason or "exported" in reason


def test_another_path_that_is_free_is_no_use(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"sdz": 1})
    twin = tree.directory(tree.twin("sdz")).parent.name
    assert holders.twins("sdz", tree.host) == [twin]
    assert tree.holder("sdz") is None


def test_a_mount_point_with_spaces_is_told_as_it_is(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"sdz": 1})
    tree.mount("sdz1")
    assert tree.holder("sdz") == "sdz1 is mounted on /mnt/my data"


def test_a_reading_process_is_no_holder(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"sdz": 0})
    tree.opened("sdz", flags="0100000")
    assert tree.holder("sdz") is None
    tree.opened("sdz", flags="0100001", pid=4712)
    assert tree.holder("sdz") == "process 4712 (qemu-system-x86) has /dev/sdz open for writing"


def test_partitions_and_mappings_are_no_drives(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"sdz": 1, "sdy": 0})
    assert "partition of sdz" in str(tree.holder("sdz1"))
    assert "made of sdy" in str(tree.holder(tree.stack("sdy")))


def test_other_holders_and_unassembled_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(tmp_path, {"sdz": 1})
    written: list[Signature] = []
    monkeypatch.setattr(guard, "_exclusive", lambda device: None)
    monkeypatch.setattr(guard.signatures, "read", lambda nodes: [s for s in written if s.node in nodes])
    written.append(Signature("sdz1", "ext4", "data"))
    assert guard.holder("/dev/sdz", "sdz", tree.host) is None
    for kind in (*MEMBERS, "linux_raid_member", "isw_raid_member"):
        written[:] = [Signature("sdz1", kind, "")]
        reason = guard.holder("/dev/sdz", "sdz", tree.host)
        assert reason is not None
        assert "sdz1 is" in reason
        assert "wipefs --all /dev/sdz1" in reason
    written.clear()
    monkeypatch.setattr(guard, "_exclusive", lambda device: "held")
    assert guard.holder("/dev/sdz", "sdz", tree.host) == "held"


def test_a_drive_that_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(nodes: list[str]) -> list[Signature]:
        raise OSError("Operation not permitted")

    monkeypatch.setattr(guard, "_exclusive", lambda device: None)
    monkeypatch.setattr(guard.signatures, "read", fails)
    tree = Tree(tmp_path, {"sdz": 0})
    assert "cannot be read (Operation not permitted)" in str(guard.holder("/dev/sdz", "sdz", tree.host))


def test_signatures_are_read_as_wipefs_prints_them() -> None:
    text = """{"signatures": [
        {"device":"sda", "offset":"0x1fe", "type":"PMBR", "uuid":null, "label":null},
        {"device":"sda1", "offset":"0x438", "type":"ext4", "uuid":"x", "label":"data"}]}"""
    assert [one.words for one in parse(text)] == ["PMBR on sda", "ext4 'data' on sda1"]
    assert parse("") == []


def test_what_the_sheet_does_not_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    row = SheetRow("a", "/dev/disk/by-id/x", "S1", False, "", "drives.tsv line 2")
    with pytest.raises(UserError, match=r"drives.tsv line 2.*destructive: no.*Nothing was written"):
        guard.approve(row, "/dev/null")
    row = SheetRow("a", "/dev/disk/by-id/x", "S1", True, "", "drives.tsv line 2")
    with pytest.raises(UserError, match="not attached"):
        guard.approve(row, "/dev/disk/by-id/x")
    with pytest.raises(UserError, match="not attached"):
        guard.approve(row, "/dev/null")


@pytest.mark.parametrize(
    ("serial", "words"), [(None, "tells no serial number.*Nothing was written"), ("S2", "has serial S2.*says S1")]
)
def test_another_or_no_serial_is_refused(monkeypatch: pytest.MonkeyPatch, serial: str | None, words: str) -> None:
    monkeypatch.setattr(guard.sysfs, "kernel_name", lambda device: "sdz")
    monkeypatch.setattr(guard, "actual_serial", lambda device, name: serial)
    with pytest.raises(UserError, match=words):
        guard.approve(SheetRow("a", "/dev/disk/by-id/x", "S1", True, "", "drives.tsv line 2"), "/dev/sdz")


@pytest.mark.parametrize("tells", ["F2", None])
def test_a_firmware_that_the_sheet_does_not_pin_is_refused(monkeypatch: pytest.MonkeyPatch, tells: str | None) -> None:
    monkeypatch.setattr(guard.sysfs, "kernel_name", lambda device: "sdz")
    monkeypatch.setattr(guard, "actual_serial", lambda device, name: "S1")
    monkeypatch.setattr(guard.identity, "describe", lambda name: {"firmware": tells})
    monkeypatch.setattr(guard, "holder", lambda device, name: None)
    row = SheetRow("a", "/dev/disk/by-id/x", "S1", True, "", "drives.tsv line 2", firmware="F1")
    with pytest.raises(UserError, match=r"drives.tsv line 2: drive 'a' has firmware .*pins it to F1.*Nothing was writ"):
        guard.approve(row, "/dev/sdz")
    assert guard.approve(SheetRow("a", "x", "S1", True, "", "line 2"), "/dev/sdz").name == "sdz"
    if tells is not None:
        row = SheetRow("a", "x", "S1", True, "", "line 2", firmware=tells)
        assert guard.approve(row, "/dev/sdz").serial == "S1"


def test_who_has_a_drive_open_in_passing_is_no_holder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard.sysfs, "kernel_name", lambda device: "sdz")
    monkeypatch.setattr(guard, "actual_serial", lambda device, name: "S1")
    row = SheetRow("a", "x", "S1", True, "", "line 2")
    answers = iter(["process 7 (losetup) has /dev/sdz open for writing", "the kernel holds it", None])
    monkeypatch.setattr(guard, "holder", lambda device, name: next(answers))
    assert guard.approve(row, "/dev/sdz").name == "sdz"
    monkeypatch.setattr(guard, "holder", lambda device, name: "process 7 (dd) has /dev/sdz open for writing")
    monkeypatch.setattr(guard, "PASSING_S", 0.1)
    with pytest.raises(UserError, match=r"process 7 .dd. has.*release it first"):
        guard.approve(row, "/dev/sdz")
