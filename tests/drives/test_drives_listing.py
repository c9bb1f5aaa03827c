"""`drivelab drives` on this machine, with a virtual drive running."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from drivelab.cli.main import main
from drivelab.core import lock
from drivelab.virtual import manage

pytestmark = pytest.mark.device


def test_a_running_virtual_drive_is_testable_until_held(
    drive: manage.VirtualDrive, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def listed() -> dict[str, object]:
        assert main(["drives", "--json", "--sheet", str(tmp_path / "none.tsv")]) == 0
        entries = [entry for entry in json.loads(capsys.readouterr().out) if entry["device"] == drive.device]
        assert len(entries) == 1
        return dict(entries[0])

    free = listed()
    assert (free["testable"], free["reason"], free["sheet"]) == (True, None, None)
    assert (free["transport"], free["serial"], free["capacity_bytes"]) == (
        "virtual",
        drive.serial,
        drive.capacity_bytes,
    )
    hold = lock.Hold(drive.device, drive.name, drive.device)
    held = listed()
    hold.close()
    assert held["testable"] is False
    assert "exclusively" in str(held["reason"])


def test_the_system_disk_is_not_testable(capsys: pytest.CaptureFixture[str]) -> None:
    number = Path("/").stat().st_dev
    below = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not below.exists():
        pytest.skip("the root file system of this machine is not on a block device")
    name = below.resolve().name if not (below / "partition").exists() else below.resolve().parent.name
    assert main(["drives", "--json"]) == 0
    entries = {entry["device"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert entries[f"/dev/{name}"]["testable"] is False
