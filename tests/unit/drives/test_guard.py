"""The guard against sysfs trees made for the purpose: whatever holds a device must be found."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drivelab.config.drives_sheet import SheetRow
from drivelab.drives import guard
from drivelab.errors import UserError


class Tree:
    """A pretended /sys and /proc with one drive, sdz, and as many partitions as wanted."""

    def __init__(self, root: Path, partitions: int = 0) -> None:
        self.sys, self.proc = root / "sys", root / "proc"
        self.nodes = ["sdz", *(f"sdz{n}" for n in range(1, partitions + 1))]
        drive = self.sys / "devices/pci/block/sdz"
        for number, node in enumerate(self.nodes):
            directory = drive if node == "sdz" else drive / node
            (directory / "holders").mkdir(parents=True)
            (directory / "dev").write_text(f"99:{number}\n")
            if node != "sdz":
                (directory / "partition").write_text(f"{number}\n")
        (self.sys / "class/block").mkdir(parents=True)
        (self.sys / "class/block/sdz").symlink_to(drive)
        (self.sys / "block").mkdir()
        (self.proc / "self").mkdir(parents=True)
        (self.proc / "self/mountinfo").write_text("1 0 0:1 / / rw - tmpfs none rw\n")
        (self.proc / "swaps").write_text("Filename Type Size Used Priority\n")
        self.drive = drive

    def directory(self, node: str) -> Path:
        return self.drive if node == "sdz" else self.drive / node

    def hold(self, node: str, how: str) -> None:
        numbers = (self.directory(node) / "dev").read_text().strip()
        if how == "mount":
            with (self.proc / "self/mountinfo").open("a") as file:
                file.write(f"2 1 {numbers} / /mnt rw - ext4 none rw\n")
        elif how == "swap":
            with (self.proc / "swaps").open("a") as file:
                file.write(f"/dev/{node} partition 100 0 -2\n")
        elif how == "holder":
            (self.directory(node) / "holders/dm-0").touch()
        elif how == "loop":
            backing = self.sys / "block/loop9/loop"
            backing.mkdir(parents=True)
            (backing / "backing_file").write_text(f"/dev/{node}\n")

    def holder(self, monkeypatch: pytest.MonkeyPatch, exclusive: str | None = None) -> str | None:
        monkeypatch.setattr(guard, "_exclusive", lambda device: exclusive)
        return guard.holder("/dev/sdz", "sdz", self.sys, self.proc)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    partitions=st.integers(0, 4),
    holds=st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["mount", "swap", "holder", "loop"])), max_size=1),
    exclusive=st.sampled_from([None, "held"]),
)
def test_no_held_drive_is_accepted(
    tmp_path_factory: pytest.TempPathFactory,
    partitions: int,
    holds: list[tuple[int, str]],
    exclusive: str | None,
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        tree = Tree(tmp_path_factory.mktemp("tree"), partitions)
        for index, how in holds:
            tree.hold(tree.nodes[index % len(tree.nodes)], how)
        held = bool(holds) or exclusive is not None
        assert (tree.holder(monkeypatch, exclusive) is not None) == held


@pytest.mark.parametrize("how", ["mount", "swap", "holder", "loop"])
@pytest.mark.parametrize("node", ["sdz", "sdz2"])
def test_the_reason_names_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, node: str) -> None:
    tree = Tree(tmp_path, 2)
    tree.hold(node, how)
    reason = tree.holder(monkeypatch)
    assert reason is not None
    assert node in reason or how == "loop"


def test_what_the_sheet_does_not_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    row = SheetRow("a", "/dev/disk/by-id/x", "S1", False, "", "drives.tsv line 2")
    with pytest.raises(UserError, match=r"drives.tsv line 2.*destructive: no.*Nothing was written"):
        guard.approve(row, "/dev/null")
    row = SheetRow("a", "/dev/disk/by-id/x", "S1", True, "", "drives.tsv line 2")
    with pytest.raises(UserError, match="not attached"):
        guard.approve(row, "/dev/disk/by-id/x")
    with pytest.raises(UserError, match="not attached"):
        guard.approve(row, "/dev/null")
