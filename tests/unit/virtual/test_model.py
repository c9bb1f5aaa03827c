"""Models of virtual drives: their units, their effects, and how a drive is known to be virtual."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from drivelab.collect.inventory import is_virtual as is_recording_virtual
from drivelab.plan.plan import Plan
from drivelab.plan.yaml_file import load_yaml
from drivelab.virtual import fuse
from drivelab.virtual.model import DriveModel

SHIPPED = Path(__file__).parents[3] / "config/virtual_drives.yaml"
GOOD: dict[str, Any] = {"serial": "S1", "capacity": "64MiB", "over_provisioning": "7%"}


def test_human_units_become_pages_and_blocks() -> None:
    model = DriveModel.from_mapping("d", {**GOOD, "pages_per_block": 32, "slc_cache": "1MiB"})
    assert (model.capacity_bytes, model.user_pages, model.slc_pages) == (64 << 20, 16384, 256)
    assert model.blocks == round(16384 * 1.07 / 32)
    assert model.over_provisioning == 0.07


@pytest.mark.parametrize("share", ["7%", "28%", "12.5%", "100%"])
def test_mapping_survives_a_round_trip(share: str) -> None:
    model = DriveModel.from_mapping("d", {**GOOD, "over_provisioning": share, "enabled": False, "read_us": 3})
    mapping = model.to_mapping()
    assert mapping["over_provisioning"] == share
    assert DriveModel.from_mapping("d", mapping) == model
    assert DriveModel.from_mapping("d", mapping).to_mapping() == mapping


def test_a_firmware_update_is_another_model() -> None:
    before = DriveModel.from_mapping("d", GOOD)
    after = DriveModel.from_mapping("d", {**GOOD, "firmware": "2.0"})
    assert "firmware" not in before.to_mapping(), "old plans stay the same"
    assert DriveModel.from_mapping("d", after.to_mapping()) == after
    assert (before.describe()["firmware"], after.describe()["firmware"]) == ("VFTL0001", "2.0")


def test_a_logical_block_of_one_page_is_not_in_the_mapping() -> None:
    plain = DriveModel.from_mapping("d", GOOD)
    assert plain.logical_block_bytes == 4096
    assert "logical_block" not in plain.to_mapping()
    assert DriveModel.from_mapping("d", {**GOOD, "logical_block": "4KiB"}).to_mapping() == plain.to_mapping()
    small = DriveModel.from_mapping("d", {**GOOD, "logical_block": "512B"})
    assert small.logical_block_bytes == 512
    assert DriveModel.from_mapping("d", small.to_mapping()) == small


def test_the_shipped_pair_differs_in_over_provisioning_and_serial_only() -> None:
    drives = load_yaml(SHIPPED)
    models = {name: DriveModel.from_mapping(name, entry).to_mapping() for name, entry in drives.items()}
    low, high = models["op7"], models["op28"]
    assert {key for key in low if low[key] != high[key]} == {"over_provisioning", "serial"}
    assert (low["over_provisioning"], high["over_provisioning"]) == ("7%", "28%")
    assert (low["serial"], high["serial"]) == ("VIRTUAL-OP7", "VIRTUAL-OP28")
    assert models["trace-origin"]["capacity"] == "512MiB"


def test_identity_has_the_columns_of_the_drives_table() -> None:
    identity = DriveModel.from_mapping("d", GOOD).describe()
    assert identity["serial"] == "S1"
    assert identity["virtual"] is True
    assert identity["over_provisioning_pct"] == 7.0
    assert identity["model"] == "drivelab virtual drive"


@pytest.fixture
def sys_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A /sys with loop1 over a virtual drive, loop2 over another file, and a real drive."""
    for name, file in (("loop1", "/run/drivelab/virtual/op7.drive"), ("loop2", "/home/a/image")):
        (tmp_path / f"class/block/{name}/loop").mkdir(parents=True)
        (tmp_path / f"class/block/{name}/loop/backing_file").write_text(f"{file}\n")
    (tmp_path / "class/block/sda").mkdir()
    monkeypatch.setattr(fuse, "mounts", lambda: [(Path("/run/drivelab/virtual/op7.drive"), 45)])
    return tmp_path


def test_only_a_file_of_drivelabs_file_system_is_a_virtual_drive(sys_root: Path) -> None:
    assert [name for name in ("loop1", "loop2", "sda", "gone") if fuse.is_virtual(name, sys_root)] == ["loop1"]


@pytest.mark.parametrize(
    ("planned", "identity", "virtual"),
    [(False, {"virtual": True}, True), (True, {}, True), (False, {"virtual": False}, False), (False, {}, False)],
)
def test_a_recording_of_a_virtual_drive_by_a_real_path_is_labelled(
    tmp_path: Path, planned: bool, identity: dict[str, Any], virtual: bool
) -> None:
    (tmp_path / "identity.json").write_text(json.dumps(identity))
    assert is_recording_virtual(tmp_path, cast("Plan", SimpleNamespace(virtual=planned))) == virtual
