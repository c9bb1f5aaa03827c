"""`drivelab drives` on this machine, with a virtual drive running."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from drivelab.cli.main import main
from drivelab.drives import lock
from drivelab.virtual import manage

pytestmark = pytest.mark.device


def test_a_running_virtual_drive_may_be_tested_until_somebody_holds_it(
    drive: manage.VirtualDrive, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def listed() -> dict[str, object]:
        assert main(["drives", "--json", "--sheet", str(tmp_path / "none.tsv")]) == 0
        found = [one for one in json.loads(capsys.readouterr().out) if one["device"] == drive.device]
        assert len(found) == 1
        return dict(found[0])

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


def test_the_disk_of_the_running_system_may_not_be_tested(capsys: pytest.CaptureFixture[str]) -> None:
    number = Path("/").stat().st_dev
    below = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not below.exists():
        pytest.skip("the root file system of this machine stands on no block device of its own")
    name = below.resolve().name if not (below / "partition").exists() else below.resolve().parent.name
    assert main(["drives", "--json"]) == 0
    found = {one["device"]: one for one in json.loads(capsys.readouterr().out)}
    assert found[f"/dev/{name}"]["testable"] is False
