"""`drivelab drives`: testable drives and reasons why not, the table, the JSON and the first sheet."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from drivelab.cli.main import main
from drivelab.cli.start import drives
from drivelab.core.errors import UserError
from drivelab.drives import guard, identity, sysfs
from drivelab.plan.drive_sheet import load_sheet
from drivelab.virtual import manage
from drivelab.virtual.model import DriveModel

Facts = dict[str, dict[str, Any]]

BY_ID = "/dev/disk/by-id/"
FACTS: dict[str, Any] = {
    "model": "EXAMPLE SSD 990 PRO 1TB", "serial": "S6Z1NJ0W123456", "firmware": "4B2QJXD7",
    "capacity_bytes": 1_000_204_886_016, "logical_block_bytes": 512, "physical_block_bytes": 512, "lba_format": "512n",
    "lba_formats": None, "transport": "pcie", "link": "8.0 GT/s PCIe x4", "link_max": "16.0 GT/s PCIe x4",
    "write_cache": "write back", "scheduler": "[none]", "rotational": False, "temperature_c": 41.85,
    "life_used_pct": 3, "spare_pct": 100, "lifetime_bytes_written": 10**12,
    "by_id": f"{BY_ID}nvme-EXAMPLE_SSD_990_PRO_1TB_S6Z1NJ0W123456",
}  # fmt: skip
BARE = dict.fromkeys(FACTS) | {"capacity_bytes": 1 << 30, "lba_format": "512n"}


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Facts:
    """Facts by kernel name, filled by the test; nothing is held; there are no partitions and virtual drives."""
    facts: Facts = {}
    monkeypatch.setattr(identity, "whole_disks", lambda *roots: list(facts))
    monkeypatch.setattr(identity, "describe", lambda name: dict(facts[name]))
    monkeypatch.setattr(
        guard, "holder", lambda device, name: f"{name} is swap space" if name.startswith("sw") else None
    )
    monkeypatch.setattr("drivelab.drives.described.composed_subjects", lambda names: [])
    monkeypatch.setattr(manage, "find_by_device", lambda device: None)
    monkeypatch.setenv("COLUMNS", "100")  # whatever the terminal of the tests has
    return facts


def sheet(tmp_path: Path, *rows: str) -> Path:
    path = tmp_path / "drives.tsv"
    path.write_text("\n".join(("drive\tdevice\tserial\tdestructive\tnote", *rows)) + "\n")
    return path


def test_untestable_drives_have_a_reason(host: Facts, tmp_path: Path) -> None:
    host |= {
        "good": FACTS, "swapped": FACTS, "nameless": FACTS | {"serial": None}, "loose": FACTS | {"by_id": None},
        "empty": FACTS | {"capacity_bytes": 0},
    }  # fmt: skip
    listed = {drive["device"]: drive for drive in drives.survey(tmp_path / "none.tsv")}
    assert {device: drive["testable"] for device, drive in listed.items()} == {
        "/dev/good": True, "/dev/swapped": False, "/dev/nameless": False, "/dev/loose": False, "/dev/empty": False,
    }  # fmt: skip
    assert listed["/dev/good"]["reason"] is None
    for name, reason in {"swapped": "swap", "nameless": "serial", "loose": "by-id", "empty": "medium"}.items():
        assert reason in listed[f"/dev/{name}"]["reason"]


def test_drives_with_one_serial_number_are_untestable(
    host: Facts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host |= {"sda": FACTS, "sdb": FACTS | {"capacity_bytes": 1 << 30}}
    monkeypatch.setattr(sysfs, "serial", lambda *arguments: FACTS["serial"])
    monkeypatch.setattr(sysfs, "capacity_bytes", lambda name, sys_root: host[name]["capacity_bytes"])
    for drive, other in zip(drives.survey(tmp_path / "none.tsv"), ("sdb", "sda"), strict=True):
        assert not drive["testable"]
        assert f" and /dev/{other} (" in drive["reason"]
        assert f"both report the serial number {FACTS['serial']}; detach one of them" in drive["reason"]


def test_a_drive_that_the_guard_cannot_check_is_untestable(
    host: Facts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_program(device: str, name: str) -> None:
        raise UserError("the program wipefs is not installed; install it")

    host["good"] = FACTS
    monkeypatch.setattr(guard, "holder", no_program)
    (drive,) = drives.survey(tmp_path / "none.tsv")
    assert (drive["testable"], drive["reason"]) == (False, "the program wipefs is not installed; install it")


@pytest.mark.parametrize("destructive", ["yes", "no"])
def test_the_listing_shows_the_drive_sheet(host: Facts, tmp_path: Path, destructive: str) -> None:
    host |= {"good": FACTS, "same-path": FACTS | {"serial": "OTHER"}, "same-serial": FACTS | {"by_id": f"{BY_ID}x"}}
    path = sheet(tmp_path, f"fast\t{FACTS['by_id']}\tS6Z1NJ0W123456\t{destructive}\t")
    listed = drives.survey(path)
    assert [(drive["sheet"], drive["sheet_name"]) for drive in listed] == [
        (destructive, "fast"), (None, None), (None, None),
    ]  # fmt: skip
    assert f"in the drive sheet as 'fast' (destructive: {destructive})" in drives.listing(listed)


def test_an_unreadable_sheet_hides_no_drive(host: Facts, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    host["good"] = FACTS
    assert len(drives.survey(sheet(tmp_path, "broken"))) == 1
    assert "drives.tsv line 2" in capsys.readouterr().err


def test_virtual_drives_are_listed_as_virtual(host: Facts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host["loop3"] = BARE
    model = DriveModel.from_mapping("v", {"serial": "V-1", "capacity": "16MiB", "over_provisioning": "28%"})
    record = manage.VirtualDrive("v", "V-1", "/dev/loop3", 1 << 24, 1, 1, "/run/v", model.to_mapping())
    monkeypatch.setattr(manage, "find_by_device", lambda device: record if device == "/dev/loop3" else None)
    (drive,) = drives.survey(sheet(tmp_path, "v\tvirtual:v\tV-1\tyes\t"))
    assert drive["testable"]
    assert (drive["transport"], drive["serial"], drive["model"], drive["pin"], drive["sheet"]) == (
        "virtual", "V-1", "drivelab virtual drive", "virtual:v", "yes",
    )  # fmt: skip
    assert drive["virtual"] is True


def test_the_first_sheet_is_readable_and_permits_no_destruction(host: Facts, tmp_path: Path) -> None:
    host |= {
        "nvme0n1": FACTS,
        "nvme0n2": FACTS | {"by_id": f"{BY_ID}nvme-second"},
        "swapped": FACTS | {"serial": "A3456", "by_id": f"{BY_ID}ata-a", "model": "TAB\there"},
        "sdb": FACTS | {"serial": "B3456", "by_id": f"{BY_ID}ata-b"},
        "vda": BARE,
    }
    path = tmp_path / "drives.tsv"
    path.write_text(drives.sheet_text(drives.survey(tmp_path / "none.tsv")))
    rows = load_sheet(path)
    assert {name: row.serial for name, row in rows.items()} == {
        "example-ssd-990-pro-1tb-3456": "S6Z1NJ0W123456", "tab-here-3456": "A3456",
        "example-ssd-990-pro-1tb-3456-2": "B3456",
    }  # fmt: skip
    assert not any(row.destructive for row in rows.values())
    assert "swap" in rows["tab-here-3456"].note
    comments = [line for line in path.read_text().splitlines() if line.startswith("#")]
    assert len(comments) == 2
    assert "S6Z1NJ0W123456 is listed above already" in comments[0]
    assert "/dev/vda" in comments[1]


def test_an_existing_sheet_is_kept_and_extended(host: Facts, tmp_path: Path) -> None:
    host |= {"nvme0n1": FACTS, "sdb": FACTS | {"serial": "B3456", "by_id": f"{BY_ID}ata-b"}, "vda": BARE}
    path = tmp_path / "drives.tsv"
    row = f"mine\t{FACTS['by_id']}\t{FACTS['serial']}\tyes\tkept\t600"
    path.write_text(f"drive\tdevice\tserial\tdestructive\tnote\tendurance_tbw\n# a remark\n{row}\n")
    for _ in range(2):
        assert main(["drives", "--tsv", "--sheet", str(path), "-o", str(path)]) == 0
        lines = path.read_text().splitlines()
        assert lines[1:3] == ["# a remark", row]
        assert len(lines) == 5
        rows = load_sheet(path)
        assert {name: row.destructive for name, row in rows.items()} == {
            "mine": True, "example-ssd-990-pro-1tb-3456": False,
        }  # fmt: skip


def test_json_of_the_command(host: Facts, capsys: pytest.CaptureFixture[str]) -> None:
    host["nvme0n1"] = FACTS
    assert main(["drives", "--json"]) == 0
    (drive,) = json.loads(capsys.readouterr().out)
    assert drive["device"] == "/dev/nvme0n1"
    assert drive["testable"] is True
    assert {key: drive[key] for key in FACTS} == FACTS


def test_a_sheet_row_with_a_link_to_itself(host: Facts, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    host["good"] = FACTS
    row = load_sheet(sheet(tmp_path, f"x\t{BY_ID}x\tS1\tyes\t"))["x"]
    assert not drives._is(dataclasses.replace(row, device=str(tmp_path / "loop")), "good", None)


COMPOSED = dict.fromkeys(FACTS) | {
    "capacity_bytes": 1 << 30, "lba_format": "512n", "transport": "part", "model": "partition 2 of sda",
    "kind": "partition", "serial": "1111-2222", "members": ["S1"], "composition": "partition on 1 drive",
    "pin": "/dev/disk/by-partuuid/1111-2222", "reason": None, "virtual": False,
}  # fmt: skip


@pytest.fixture
def partition(host: Facts, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A host with one drive and one partition; the test may change the partition's facts."""
    facts = dict(COMPOSED)
    host["sda"] = FACTS
    monkeypatch.setattr("drivelab.drives.described.composed_subjects", lambda names: ["sda2"])
    monkeypatch.setattr("drivelab.drives.described.facts", lambda name: dict(facts))
    return facts


def test_a_partition_gets_a_row_only_if_the_sheet_can_hold_it(partition: dict[str, Any], tmp_path: Path) -> None:
    """Without the columns `kind` and `members` it is a comment; a partition in use is left out."""
    listed = drives.survey(tmp_path / "none.tsv")
    comment = drives.sheet_text(listed).splitlines()[-1]
    assert comment.startswith("# /dev/sda2: ")
    assert "kind partition, members S1" in comment
    columns = "drive\tdevice\tserial\tdestructive\tnote\tkind\tmembers"
    path = tmp_path / "drives.tsv"
    path.write_text(drives.sheet_text(listed, columns))
    row = next(row for row in load_sheet(path).values() if row.kind == "partition")
    assert (row.serial, row.members, row.destructive) == ("1111-2222", ("S1",), False)
    partition["reason"] = "sda1 is mounted on /home"
    assert "sda2" not in drives.sheet_text(drives.survey(tmp_path / "none.tsv"), columns)


def test_a_partition_in_the_sheet_is_recognised(partition: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "drives.tsv"
    path.write_text(
        "drive\tdevice\tserial\tdestructive\tnote\tkind\tmembers\n"
        "part\t/dev/disk/by-partuuid/1111-2222\t1111-2222\tyes\t\tpartition\tS1\n"
    )
    listed = {drive["device"]: drive for drive in drives.survey(path)}
    assert (listed["/dev/sda2"]["sheet"], listed["/dev/sda2"]["sheet_name"]) == ("yes", "part")
    assert listed["/dev/sda"]["sheet"] is None
