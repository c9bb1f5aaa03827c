"""The guard on fake sysfs trees must find everything that holds a device."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace

import pytest
from device_trees import WAYS, Tree
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drivelab.core import lock
from drivelab.core.errors import UserError
from drivelab.drives import guard, holders
from drivelab.drives.identified import Identity
from drivelab.drives.node import File, Node
from drivelab.drives.signatures import MEMBERS, Signature, parse
from drivelab.drives.target import file_holder
from drivelab.plan.drive_sheet import SheetRow


@dataclass
class Situation:
    partitions: int
    use: list[tuple[int, str]] = field(default_factory=list)
    """Index of the node among drive and partitions, and how the node is used."""
    use_of_others: list[str] = field(default_factory=list)


situations = st.builds(
    Situation,
    st.integers(0, 4),
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(sorted(WAYS))), max_size=2, unique_by=lambda use: use[1]),
    st.lists(st.sampled_from(sorted(set(WAYS) - {"read-only"})), max_size=2, unique=True),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None)
@given(situations)
def test_a_drive_is_accepted_only_if_nothing_uses_it(tmp_path: Path, situation: Situation) -> None:
    tree = Tree(Path(mkdtemp(dir=tmp_path)), {"sdz": situation.partitions, "nvme3n1": 2})
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
    hints = (node, "over it", "contains / ", "twin", "exported", "heartbeat", "process 4711 (qemu-system-x86) has /")
    assert any(hint in reason for hint in hints)


def test_another_free_path_does_not_count_as_use(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"sdz": 1})
    twin = tree.directory(tree.twin("sdz")).parent.name
    assert holders.twins("sdz", tree.host) == [twin]
    assert tree.holder("sdz") is None


def test_hidden_paths_of_native_multipath_are_not_twins(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"nvme0n1": 0, "nvme0c0n1": 0})
    for node in tree.nodes:
        (tree.directory(node) / "wwid").write_text("eui.0025385b21404321\n")
    assert holders.twins("nvme0n1", tree.host) == ["nvme0c0n1"]
    (tree.directory("nvme0c0n1") / "hidden").write_text("1\n")
    assert holders.twins("nvme0n1", tree.host) == []


def test_a_namespace_of_an_exported_controller_is_in_use(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"nvme0n1": 1, "nvme1n1": 0})
    (tree.sys / "class/nvme/nvme5/nvme0c5n1").mkdir(parents=True)
    folder = tree.sys / "kernel/config/nvmet/subsystems/nqn.x/passthru"
    folder.mkdir(parents=True)
    (folder / "device_path").write_text("/dev/nvme5\n")
    reason = tree.holder("nvme0n1")
    assert reason is not None
    assert reason == "it is exported to other hosts by the NVMe target (subsystems/nqn.x/passthru)"
    assert tree.holder("nvme1n1") is None


def test_a_namespace_of_this_hosts_own_target_counts_as_what_is_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loopback target opens a mounted drive without holding it, and the namespace shows no use."""
    tree = Tree(tmp_path, {"nvme0n1": 1, "nvme1n1": 0})
    monkeypatch.setattr(guard, "_exclusive", lambda device: None)
    monkeypatch.setattr(guard.signatures, "read", lambda nodes: [])
    (tree.directory("nvme1n1") / "uuid").write_text("d2f1\n")
    tree.export("nvme0n1")
    folder = tree.sys / "kernel/config/nvmet/subsystems/nqn.x/namespaces/1"
    (folder / "device_uuid").write_text("d2f1\n")
    assert guard.holder("/dev/nvme1n1", "nvme1n1", tree.host) is None
    tree.mount("nvme0n1p1", "/srv")
    reason = guard.holder("/dev/nvme1n1", "nvme1n1", tree.host)
    assert reason == "this host exports it from nvme0n1, and nvme0n1p1 is mounted on /srv"
    (folder / "device_uuid").write_text("other\n")
    assert guard.holder("/dev/nvme1n1", "nvme1n1", tree.host) is None


def test_a_mount_point_with_spaces_is_decoded(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"sdz": 1})
    tree.mount("sdz1")
    assert tree.holder("sdz") == "sdz1 is mounted on /mnt/my data"


def test_a_reading_process_is_not_a_holder(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"sdz": 0})
    tree.opened("sdz", flags="0100000")
    assert tree.holder("sdz") is None
    tree.opened("sdz", flags="0100001", pid=4712)
    assert tree.holder("sdz") == "process 4712 (qemu-system-x86) has /dev/sdz open for writing"


def test_an_exported_image_is_in_use(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {})
    image = tmp_path / "image"
    image.touch()
    place = (image.stat().st_dev, image.stat().st_ino)
    tree.files[str(image)] = File("", "", place)
    assert file_holder(place, tree.host) is None
    tree.backstore(f"TCM FILEIO ID: 0        File: {image}  Size: 4096  Mode: O_DSYNC Async: 0")
    reason = "it is exported to other hosts by the LIO target (core/fileio_0/disk)"
    assert file_holder(place, tree.host) == reason
    (tree.sys / "kernel/config/target/core/fileio_0/disk/info").write_text("Status: DEACTIVATED\n")
    assert file_holder(place, tree.host) is None
    (tree.sys / "kernel/config/target/core/fileio_0/disk/udev_path").write_text(f"{image}\n")
    assert file_holder(place, tree.host) == reason


def test_partitions_and_mappings_are_refused(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"sdz": 1, "sdy": 0})
    assert "partition of sdz" in str(tree.holder("sdz1"))
    assert "consists of sdy" in str(tree.holder(tree.stack("sdy")))


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


def test_wipefs_output_is_parsed() -> None:
    text = """{"signatures": [
        {"device":"sda", "offset":"0x1fe", "type":"PMBR", "uuid":null, "label":null},
        {"device":"sda1", "offset":"0x438", "type":"ext4", "uuid":"x", "label":"data"}]}"""
    assert [signature.words for signature in parse(text)] == ["PMBR on sda", "ext4 'data' on sda1"]
    assert parse("") == []


def test_sheet_without_permission_or_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    row = SheetRow("a", "/dev/disk/by-id/x", "S1", False, "", "drives.tsv line 2")
    with pytest.raises(UserError, match=r"drives.tsv line 2.*destructive: no.*Nothing was written"):
        guard.approve(row, "/dev/null")
    row = SheetRow("a", "/dev/disk/by-id/x", "S1", True, "", "drives.tsv line 2")
    with pytest.raises(UserError, match="not attached"):
        guard.approve(row, "/dev/disk/by-id/x")
    with pytest.raises(UserError, match="not attached"):
        guard.approve(row, "/dev/null")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Node:
    """Every path leads to the drive sdz."""
    node = Node(99, "sdz", "99:0", "7")
    monkeypatch.setattr(guard.node, "opened", lambda path: nullcontext(node))
    monkeypatch.setattr(guard.node, "of_descriptor", lambda descriptor, path: node)
    monkeypatch.setattr(guard, "actual_serial", lambda device, name: "S1")
    monkeypatch.setattr(guard, "holder", lambda device, name, own_hold=False: None)
    monkeypatch.setattr(guard, "_read_problem", lambda opened: None)
    return node


@pytest.mark.parametrize(
    ("serial", "reason"), [(None, "has no serial number.*Nothing was written"), ("S2", "has serial S2.*says S1")]
)
def test_a_different_or_missing_serial_is_refused(
    monkeypatch: pytest.MonkeyPatch, opened: Node, serial: str | None, reason: str
) -> None:
    monkeypatch.setattr(guard, "actual_serial", lambda device, name: serial)
    with pytest.raises(UserError, match=reason):
        guard.approve(SheetRow("a", "/dev/disk/by-id/x", "S1", True, "", "drives.tsv line 2"), "/dev/sdz")


@pytest.mark.parametrize("firmware", ["F2", None])
def test_a_firmware_other_than_the_pinned_one_is_refused(
    monkeypatch: pytest.MonkeyPatch, opened: Node, firmware: str | None
) -> None:
    monkeypatch.setattr(guard.identity, "describe", lambda name: {"firmware": firmware})
    row = SheetRow("a", "/dev/disk/by-id/x", "S1", True, "", "drives.tsv line 2", firmware="F1")
    with pytest.raises(UserError, match=r"drives.tsv line 2: drive 'a' has .*firmware.*pins it to F1.*Nothing was w"):
        guard.approve(row, "/dev/sdz")
    assert guard.approve(SheetRow("a", "x", "S1", True, "", "line 2"), "/dev/sdz").name == "sdz"
    if firmware is not None:
        row = SheetRow("a", "x", "S1", True, "", "line 2", firmware=firmware)
        assert guard.approve(row, "/dev/sdz").serial == "S1"


def test_a_serial_number_that_two_drives_report_is_refused(monkeypatch: pytest.MonkeyPatch, opened: Node) -> None:
    asked = []

    def doubled(name: str, serial: str, kind: str) -> str:
        asked.append((name, serial, kind))
        return f"/dev/{name} and /dev/sdy both report the serial number {serial}"

    monkeypatch.setattr(guard.doubles, "with_same_serial", doubled)
    words = (
        r"drives.tsv line 2: drive 'a': /dev/sdz and /dev/sdy both report .* S1\. .*Nothing was written\. Detach one"
    )
    with pytest.raises(UserError, match=words):
        guard.approve(SheetRow("a", "/dev/disk/by-id/x", "S1", True, "", "drives.tsv line 2"), "/dev/sdz")
    guard.approve(SheetRow("a", "virtual:a", "S1", True, "", "line 2"), "/dev/sdz")
    assert asked == [("sdz", "S1", "drive")]
    monkeypatch.setattr(
        guard, "Subject", lambda name: SimpleNamespace(disks=("sdx", "sdw"), wrong_members=lambda members: None)
    )
    monkeypatch.setattr(guard, "other_kind", lambda kind, name: None)
    monkeypatch.setattr(guard, "identifier", lambda kind, name: "U")
    row = SheetRow("a", "/dev/md/a", "U", True, "", "line 2", kind="array", members=("S1",))
    with pytest.raises(UserError, match=r"array 'a': /dev/sdx and /dev/sdy both report"):
        guard.approve(row, "/dev/sdz")
    assert asked[1:] == [("sdx", "S1", "drive")]


def test_the_identity_is_that_of_the_device_that_was_opened(monkeypatch: pytest.MonkeyPatch, opened: Node) -> None:
    """A drive with the same serial number takes its place while the guard waits for a holder."""
    found = [Identity("S1", 512, "Fast 1"), Identity("S1", 512, "Slow 2")]
    monkeypatch.setattr(guard.identified, "read", lambda *arguments: found.pop(0) if len(found) > 1 else found[0])
    monkeypatch.setattr(guard, "exclusive", lambda *arguments, **options: nullcontext())
    monkeypatch.setattr(guard.erasing, "wait_until_ended", lambda opened: None)
    monkeypatch.setattr(guard, "_hold", lambda *arguments: SimpleNamespace(close=lambda: None))
    row = SheetRow("a", "/dev/disk/by-id/x", "S1", True, "", "line 2")
    with (
        pytest.raises(UserError, match=r"swapped.*model Fast 1 → Slow 2.*Nothing was written"),
        guard.held(row, "/dev/sdz"),
    ):
        pass


def test_a_brief_open_does_not_count_as_holder(monkeypatch: pytest.MonkeyPatch, opened: Node) -> None:
    row = SheetRow("a", "x", "S1", True, "", "line 2")
    answers = iter(["process 7 (losetup) has /dev/sdz open for writing", "the kernel holds it", None])
    monkeypatch.setattr(guard, "holder", lambda device, name, own_hold=False: next(answers))
    assert guard.approve(row, "/dev/sdz").name == "sdz"
    reason = "process 7 (dd) has /dev/sdz open for writing"
    monkeypatch.setattr(guard, "holder", lambda device, name, own_hold=False: reason)
    monkeypatch.setattr(lock, "PASSING_S", 0.1)
    with pytest.raises(UserError, match=r"process 7 .dd. has.*Release it first"):
        guard.approve(row, "/dev/sdz")


CHANGES: dict[str, tuple[str, object, str]] = {
    "another number": ("of_descriptor", Node(99, "sdz", "99:1", "7"), "swapped"),
    "another attachment": ("of_descriptor", Node(99, "sdz", "99:0", "8"), "swapped"),
    "another name": ("of_descriptor", Node(99, "sdy", "99:0", "7"), "swapped"),
    "another serial": ("actual_serial", "S2", "swapped"),
    "no serial": ("actual_serial", None, "swapped"),
    "another capacity": ("read", Identity("S1", 512), "swapped.*capacity 0 bytes → 512 bytes"),
    "another model": ("read", Identity("S1", 0, "Slow 2"), "swapped.*model none → Slow 2"),
    "another world-wide name": ("read", Identity("S1", 0, None, "eui.2"), "swapped.*world-wide name none → eui.2"),
    "a second drive with its serial": ("with_same_serial", "/dev/sdz and /dev/sdy both report S1", "sdz and /dev/sdy"),
    "a writer": ("holder", "process 7 (dd) has it open for writing", "process 7"),
}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_after_approval_is_refused(monkeypatch: pytest.MonkeyPatch, opened: Node, change: str) -> None:
    where, value, reason = CHANGES[change]
    row = SheetRow("a", "x", "S1", True, "", "line 2")
    held = guard.HeldDevice("/dev/sdz", "sdz", "S1", None, opened, identity=Identity("S1", 0))
    guard.confirm(row, held)
    owner = {"of_descriptor": guard.node, "read": guard.identified, "with_same_serial": guard.doubles}.get(where, guard)
    monkeypatch.setattr(owner, where, lambda *arguments, **options: value)
    with pytest.raises(UserError, match=f"{reason}.*Nothing was written"):
        guard.confirm(row, held)
