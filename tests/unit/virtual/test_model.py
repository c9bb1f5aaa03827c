from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from drivelab.core.errors import UserError
from drivelab.plan.yaml_file import load_yaml
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


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("firmware", 2.0),
        ("firmware", "too-long-a-name"),
        ("capacity", "64"),
        ("capacity", 1 << 26),
        ("capacity", "4KiB"),
        ("capacity", "1048577B"),
        ("over_provisioning", 0.07),
        ("over_provisioning", "0%"),
        ("over_provisioning", "401%"),
        ("over_provisioning", "0.5%"),
        ("dies", 0),
        ("dies", True),
        ("dies", 3),
        ("pages_per_block", 2.0),
        ("program_us", -1),
        ("program_us", "640"),
        ("program_us", float("nan")),
        ("write_buffer", "0B"),
        ("enabled", "yes"),
        ("serial", "two words"),
        ("serial", 7),
        ("seed", -1),
        ("logical_block", "1KiB"),
        ("colour", "blue"),
    ],
)
def test_a_bad_value_is_refused_with_drive_and_key(key: str, value: Any) -> None:
    with pytest.raises(UserError) as refusal:
        DriveModel.from_mapping("mine", {**GOOD, key: value})
    assert "virtual drive 'mine'" in str(refusal.value)
    named = "pages_per_block" if key == "dies" and value == 3 else key
    assert f"'{named}'" in str(refusal.value)


def test_a_logical_block_of_one_page_is_not_in_the_mapping() -> None:
    plain = DriveModel.from_mapping("d", GOOD)
    assert plain.logical_block_bytes == 4096
    assert "logical_block" not in plain.to_mapping()
    assert DriveModel.from_mapping("d", {**GOOD, "logical_block": "4KiB"}).to_mapping() == plain.to_mapping()
    small = DriveModel.from_mapping("d", {**GOOD, "logical_block": "512B"})
    assert small.logical_block_bytes == 512
    assert DriveModel.from_mapping("d", small.to_mapping()) == small


@pytest.mark.parametrize("key", list(GOOD))
def test_a_missing_key_is_named(key: str) -> None:
    with pytest.raises(UserError, match=f"'{key}' is missing"):
        DriveModel.from_mapping("mine", {k: v for k, v in GOOD.items() if k != key})


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
