"""The kernel's own tables show the layers of real stacks: a virtual drive, and loop devices within each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from loops import image, looped, mounted

from drivelab.host.stack import stack
from drivelab.virtual import manage

pytestmark = pytest.mark.device


@contextmanager
def in_a_file(file: Path, size_mib: int, options: str, point: Path) -> Iterator[str]:
    """Mount an ext4 of its own in a file; yield the loop device's name."""
    with looped(image(file, size_mib)) as device, mounted(device, point, "ext4", "-o", options):
        yield Path(device).name


def test_a_virtual_drive(drive: manage.VirtualDrive) -> None:
    (layer,) = found = stack.layers(Path(drive.device))
    assert (layer.kind, layer.name, layer.words) == (
        "disk",
        Path(drive.device).name,
        "virtual drive 'test' of drivelab",
    )
    assert stack.class_of(found) == "virtual drive"


def test_loop_devices_within_each_other(drive: manage.VirtualDrive, tmp_path: Path) -> None:
    """The fixture skips where loop devices are not possible."""
    below = stack.layers(tmp_path)
    with (
        in_a_file(tmp_path / "outer.img", 32, "data=journal", tmp_path / "outer") as outer,
        in_a_file(tmp_path / "outer/inner.img", 8, "sync", tmp_path / "inner") as inner,
    ):
        found = stack.layers(tmp_path / "inner")
    assert [(layer.kind, layer.name) for layer in found[:4]] == [
        ("file system", "ext4"), ("loop", inner), ("file system", "ext4"), ("loop", outer)
    ]  # fmt: skip
    assert found[4:] == below
    assert any("each write waits" in text for text in found[0].cautions)
    assert any("data=journal" in text for text in found[2].cautions)
