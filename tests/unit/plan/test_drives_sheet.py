"""Columns and rows of the drive sheet, and what of them is in the plan."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from drivelab.campaign.subjects import drive_subject
from drivelab.core.errors import UserError
from drivelab.plan.drive_sheet import OPTIONAL, SheetRow, load_sheet
from drivelab.virtual.model import DriveModel

ON_DRIVES = OPTIONAL[:5]
"""Columns that a row of a whole drive may fill."""
VALUES = {"endurance_tbw": "600", "over_provisioning_pct": "28.5", "host": "bench-a.lab", "firmware": "EDA7 202Q",
          "model": "Vendor 990 Pro"}  # fmt: skip
RAW_FILL = {"condition": {"purge": "none", "fill": [{"raw_capacity_multiple": 2.0}]}}


def row(path: Path, **more: str) -> SheetRow:
    path.write_text(
        "\t".join(["drive", "device", "serial", "destructive", "note", *more]) + "\n"
        + "\t".join(["fast", "/dev/disk/by-id/nvme-x", "S1", "yes", "", *more.values()]) + "\n"
    )  # fmt: skip
    return load_sheet(path)["fast"]


def test_optional_columns_in_any_order_and_number(tmp_path: Path) -> None:
    values = {"endurance_bytes": 600e12, "over_provisioning": 0.285, "host": "bench-a.lab", "firmware": "EDA7 202Q",
              "model": "Vendor 990 Pro"}  # fmt: skip
    for columns in (columns for n in range(6) for columns in permutations(ON_DRIVES, n)):
        sheet_row = row(tmp_path / "drives.tsv", **{name: VALUES[name] for name in columns})
        empty = row(tmp_path / "drives.tsv", **dict.fromkeys(columns, ""))
        for column, (name, value) in zip(ON_DRIVES, values.items(), strict=True):
            assert getattr(sheet_row, name) == (value if column in columns else None), columns
            assert getattr(empty, name) is None, columns


def test_the_firmware_is_in_the_plan_only_if_pinned(tmp_path: Path) -> None:
    steps = {"condition": {"purge": "none"}}
    assert drive_subject(row(tmp_path / "a", firmware=""), None, steps) == {"serial": "S1"}
    assert drive_subject(row(tmp_path / "a", firmware="F2"), None, steps) == {"serial": "S1", "firmware": "F2"}


def test_a_fill_of_the_raw_capacity_needs_over_provisioning(tmp_path: Path) -> None:
    known, unknown = row(tmp_path / "a", over_provisioning_pct="7"), row(tmp_path / "b")
    assert drive_subject(known, None, RAW_FILL) == {"serial": "S1", "over_provisioning": 0.07}
    with pytest.raises(UserError, match=r"drive 'fast'.*enter it in the column over_provisioning_pct"):
        drive_subject(unknown, None, RAW_FILL)
    for steps in ({"condition": {"purge": "none"}}, {"condition": {"fill": {"capacity_multiple": 2.0}}}):
        assert drive_subject(known, None, steps) == {"serial": "S1"}, "the plan must not contain unneeded fields"


def test_a_virtual_drive_gives_its_own_over_provisioning() -> None:
    model = DriveModel.from_mapping("x", {"serial": "S1", "capacity": "16MiB", "over_provisioning": "28%"})
    sheet = SheetRow("x", "virtual:x", "S1", True, "", "drives.tsv line 2")
    assert drive_subject(sheet, model, RAW_FILL)["over_provisioning"] == pytest.approx(0.28)
    assert "over_provisioning" not in drive_subject(sheet, model, {"condition": {"purge": "none"}})


def other(path: Path, kind: str, device: str, **more: str) -> SheetRow:
    fields = {"drive": "x", "device": device, "serial": "ID", "destructive": "yes", "note": "", "kind": kind, **more}
    path.write_text("\t".join(fields) + "\n" + "\t".join(fields.values()) + "\n")
    return load_sheet(path)["x"]


@pytest.mark.parametrize(
    ("kind", "device", "more"),
    [
        ("partition", "/dev/disk/by-partuuid/0b1c-01", {"members": "B A A"}),
        ("volume", "/dev/mapper/vg-lv", {"members": "B A"}),
        ("array", "/dev/md/data", {"members": "A B"}),
        ("namespace", "/dev/disk/by-id/nvme-uuid.1", {}),
        ("file", "/mnt/my data", {"size": "16GiB"}),
    ],
)
def test_each_kind_is_pinned_and_in_the_plan(tmp_path: Path, kind: str, device: str, more: dict[str, str]) -> None:
    sheet_row = other(tmp_path / "drives.tsv", kind, device, **more)
    subject = drive_subject(sheet_row, None, {"condition": {"purge": "none"}})
    expected = {"serial": "ID", "kind": kind}
    expected |= {"members": ["A", "B"]} if "members" in more else {}
    expected |= {"size_bytes": 16 << 30} if "size" in more else {}
    assert subject == expected


def test_folders_of_one_file_system_share_its_identifier(tmp_path: Path) -> None:
    """A folder may also have several rows, with files of several sizes, but every row has its own name."""
    path = tmp_path / "drives.tsv"
    head = ["drive\tdevice\tserial\tdestructive\tnote\tkind\tsize"]
    rows = [f"{name}\t{folder}\tUUID\tno\t\tfile\t{size}"
            for name, folder, size in (("a", "/a", "1GiB"), ("b", "/b", "1GiB"), ("a-2", "/a", "2GiB"))]  # fmt: skip
    path.write_text("\n".join(head + rows) + "\n")
    assert set(load_sheet(path)) == {"a", "b", "a-2"}
    path.write_text("\n".join([*head, *rows, rows[0]]) + "\n")
    with pytest.raises(UserError, match="drive 'a' is already on line 2"):
        load_sheet(path)
