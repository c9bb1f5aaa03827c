"""Optional columns of the drive sheet."""

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


@pytest.mark.parametrize(
    ("column", "wrong", "reason"),
    [
        ("model", "a/b", "model is 'a/b'.*use letters"),
        *(("over_provisioning_pct", wrong, ".*_pct is.*such as 28") for wrong in ("28%", "-1", "0.28x", "480000")),
        *(("host", wrong, "host is.*uname -n") for wrong in ("any", "bench a", "-x", "a/b")),
    ],
)  # fmt: skip
def test_a_value_that_does_not_suit_its_column_is_refused(tmp_path: Path, column: str, wrong: str, reason: str) -> None:
    with pytest.raises(UserError, match=rf"drives\.tsv line 2: {reason}"):
        row(tmp_path / "drives.tsv", **{column: wrong})


def test_the_firmware_is_in_the_plan_only_if_pinned(tmp_path: Path) -> None:
    steps = {"condition": {"purge": "none"}}
    assert drive_subject(row(tmp_path / "a", firmware=""), None, steps) == {"serial": "S1"}
    assert drive_subject(row(tmp_path / "a", firmware="F2"), None, steps) == {"serial": "S1", "firmware": "F2"}


def test_a_column_twice(tmp_path: Path) -> None:
    path = tmp_path / "drives.tsv"
    path.write_text("drive\tdevice\tserial\tdestructive\tnote\tendurance_tbw\tendurance_tbw\n")
    with pytest.raises(UserError, match=r"drives\.tsv line 1: the columns must be"):
        load_sheet(path)


@pytest.mark.parametrize(
    ("header", "fields", "sentence"),
    [
        ("", ["600"], "has 6 fields, but the header names 5 columns"),
        ("\tendurance_tbw\thost", ["600"], "has 6 fields, but the header names 7 columns"),
    ],
)
def test_a_row_with_another_number_of_fields(tmp_path: Path, header: str, fields: list[str], sentence: str) -> None:
    path = tmp_path / "drives.tsv"
    row = ["fast", "/dev/disk/by-id/nvme-x", "S1", "yes", "", *fields]
    path.write_text(f"drive\tdevice\tserial\tdestructive\tnote{header}\n" + "\t".join(row) + "\n")
    with pytest.raises(UserError) as caught:
        load_sheet(path)
    assert str(caught.value) == (
        f"{path} line 2: {sentence}; give every row one field per column, separated by single tabs (empty if not "
        "known), and name every optional column (endurance_tbw, over_provisioning_pct, host, firmware, model, kind, "
        "members, size) in the header"
    )


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


@pytest.mark.parametrize(
    ("kind", "device", "more", "words"),
    [
        ("raid", "/dev/md/data", {}, "kind is 'raid'; write drive, partition"),
        ("array", "/dev/md0", {"members": "A"}, "device '/dev/md0' is not a path under /dev/md"),
        ("array", "/dev/md/data", {}, "an? array needs members"),
        ("array", "/dev/md/data", {"members": "A,B"}, "members is 'A,B'; separate the serial numbers by spaces"),
        ("partition", "/dev/sda1", {"members": "A"}, "device '/dev/sda1' is not a path under /dev/disk/by-partuuid"),
        ("", "/dev/disk/by-id/x", {"members": "A"}, "a drive has no members"),
        ("file", "relative", {"size": "1GiB"}, "Give the folder's whole path"),
        ("file", "/mnt", {}, "size is ''; give the size of the temporary file"),
        ("file", "/mnt", {"size": "1GB"}, "'1GB' is not a size"),
        ("volume", "/dev/mapper/v", {"members": "A", "size": "1GiB"}, "a volume has its own"),
    ],
)
def test_a_row_that_does_not_fit_its_kind_is_refused(
    tmp_path: Path, kind: str, device: str, more: dict[str, str], words: str
) -> None:
    with pytest.raises(UserError, match=rf"drives\.tsv line 2: .*{words}"):
        other(tmp_path / "drives.tsv", kind, device, **more)


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
