"""`drivelab drives --tsv -o SHEET` reports what it added, and asks for a yes only if a drive needs one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from drivelab.cli.main import main
from drivelab.drives import guard, identity
from drivelab.plan.drive_sheet import load_sheet
from drivelab.virtual import manage

BY_ID = "/dev/disk/by-id/"
HEADER = "drive\tdevice\tserial\tdestructive\tnote\n"
KNOWN = f"a\t{BY_ID}ata-A\tA\tno\t\n"
NO_DRIVE = "no drive added; lines that begin with # give the reasons"
ASKED = "name the new drives, and set destructive to yes where the data may be destroyed"
HELD = f"of which cannot be tested now (see the column 'note'); {ASKED}"


@pytest.mark.parametrize(
    ("disks", "present", "message", "rows"),
    [
        (["sda"], "", f"1 drive added; {ASKED}", 1),
        (["sda", "sdb", "vda"], HEADER + KNOWN, f"1 drive added; {ASKED}", 2),
        (["sda", "root"], "", f"2 drives added, 1 {HELD}", 2),
        (["root", "sda"], HEADER + KNOWN, f"1 drive added, 1 {HELD}", 2),
        (["vda"], "", NO_DRIVE, 0),
        (["sda", "vda"], HEADER + KNOWN, NO_DRIVE, 1),
        (["sda"], HEADER + KNOWN.replace("ata-A", "ata-moved"), NO_DRIVE, 1),
        (["sda"], HEADER + KNOWN, "no drive added: the sheet has all drives of this host", 1),
    ],
)  # fmt: skip
def test_added_drives_are_reported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    disks: list[str],
    present: str,
    message: str,
    rows: int,
) -> None:
    _host(monkeypatch, disks)
    path = tmp_path / "drives.tsv"
    path.write_text(present)
    for again in (False, True):
        assert main(["drives", "--tsv", "--sheet", str(path), "-o", str(path)]) == 0
        text, printed = path.read_text(), capsys.readouterr().out
        assert len(load_sheet(path)) == rows
        if again:
            assert "no drive added" in printed
            assert "destructive" not in printed
        else:
            assert printed == f"{path}: written; {message}\n"
            assert ("lines that begin with #" not in message) or "\n# /dev/" in text, "the reasons are in the file"
            assert ("see the column 'note'" not in message) or "not testable: root is in use" in text


def test_a_column_host_gets_the_name_of_this_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that each host of a study adds its drives to one sheet."""
    path = tmp_path / "drives.tsv"
    path.write_text(f"{HEADER[:-1]}\thost\n{KNOWN[:-1]}\tbench-a\n")
    for node, disks in (("bench-a", ["sda"]), ("bench-b", ["sdb", "vda"]), ("bench-c", ["vda"])):
        monkeypatch.setenv("SLURMD_NODENAME", node)
        _host(monkeypatch, disks)
        assert main(["drives", "--sheet", str(path), "-o", str(path)]) == 0
    assert {row.serial: row.host for row in load_sheet(path).values()} == {"A": "bench-a", "B": "bench-b"}
    comments = [line.partition(":")[0] for line in path.read_text().splitlines() if line.startswith("#")]
    assert comments == ["# /dev/vda of bench-b", "# /dev/vda of bench-c"]


def _host(monkeypatch: pytest.MonkeyPatch, disks: list[str]) -> None:
    """Make a host whose disks sdX and root (in use) have serial number and by-id path; others, such as vda, do not."""
    monkeypatch.setattr(identity, "whole_disks", lambda *roots: disks)
    monkeypatch.setattr(identity, "describe", _facts)
    monkeypatch.setattr(guard, "holder", lambda device, name: "root is in use" if name == "root" else None)
    monkeypatch.setattr(manage, "find_by_device", lambda device: None)


def _facts(name: str) -> dict[str, Any]:
    serial = {"v": None, "r": "ROOT", "s": name.removeprefix("sd").upper()}[name[0]]
    return {
        "model": None, "serial": serial, "capacity_bytes": 1 << 30, "by_id": f"{BY_ID}ata-{serial}" if serial else None,
    }  # fmt: skip
