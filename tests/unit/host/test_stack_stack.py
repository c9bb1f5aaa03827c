"""The bottom of stacks that cannot be in the table of outcomes, which has the layers of all others."""

from __future__ import annotations

from pathlib import Path

import pytest
from storage_places import AHCI, Place

from drivelab.host.stack import stack
from drivelab.host.stack.stack import Layer, class_of
from drivelab.virtual import manage


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def layers(path: Path | str, place: Place) -> tuple[Layer, ...]:
    return stack.layers(Path(path), place.host)


def kinds(found: tuple[Layer, ...]) -> list[tuple[str, str]]:
    return [(layer.kind, layer.name) for layer in found]


@pytest.mark.parametrize("kind", ["overlay", "ecryptfs"])
def test_a_file_system_over_another_leads_to_its_folder(place: Place, kind: str) -> None:
    upper = place.sys.parent / "upper"
    upper.mkdir()
    place.mounted("ext4", f"/dev/{place.disk('sda', AHCI)}", at=str(upper.parent))
    if kind == "ecryptfs":
        found = layers(place.mounted("ecryptfs", str(upper), at="/private"), place)
    else:
        options = f"rw,lowerdir=/l,upperdir={upper},workdir=/w"
        found = layers(place.mounted("overlay", "overlay", options, at="/merged"), place)
        assert "copies the whole" in found[0].cautions[0]
    assert [name for _, name in kinds(found)] == [kind, "ext4", "sda"]
    assert [len(layer.cautions) for layer in found] == [1, 0, 0]


def test_a_virtual_drive_is_the_bottom(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    drive = manage.VirtualDrive("op7", "S1", "/dev/loop9", 1, 1, 1, "/x", {})
    monkeypatch.setattr(manage, "find_by_device", lambda device: drive)
    place.virtual("loop9", loop__backing_file="/run/op7.drive/disk")
    found = layers("/dev/loop9", place)
    assert kinds(found) == [("disk", "loop9")]
    assert class_of(found, place.host) == "virtual drive"


def test_a_cycle_ends(place: Place) -> None:
    """A loop device over a file on itself is impossible, but a damaged tree must not hang."""
    place.mapping("dm-0", (), "", "a")
    place.mapping("dm-1", ("dm-0",), "", "b")
    (place.directory("dm-0") / "slaves/dm-1").symlink_to(place.directory("dm-1"))
    assert kinds(layers("/dev/dm-1", place)) == [("device mapper", "b"), ("device mapper", "a")]


def test_a_mount_without_a_mount_table(place: Place) -> None:
    place.table.write_text("")
    assert [layer.kind for layer in layers("/x", place)] == ["unknown"]


def test_this_machine_knows_the_memory_below_its_files() -> None:
    """The real tables of the kernel can be read; what is below differs by machine."""
    found = stack.layers(Path("/proc/self"))
    assert [layer.name for layer in found] == ["proc"]
    assert stack.layers(Path("/"))
