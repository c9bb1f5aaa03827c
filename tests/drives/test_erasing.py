"""An erase whose stage was killed: the guard approves the drive only after the erase has ended."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from drivelab.core.private import run_directory
from drivelab.drives import guard
from drivelab.plan.drive_sheet import SheetRow
from drivelab.virtual import manage

pytestmark = pytest.mark.device
ERASE = """
import sys
from drivelab.drives import erasing
erasing.run(sys.argv[1], "sh", "-c", f"echo begun >{sys.argv[2]}; read answer <{sys.argv[2]}; sync")
"""


def test_the_guard_waits_for_the_erase(
    drive: manage.VirtualDrive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, gate = Path(drive.device).name, tmp_path / "gate"
    os.mkfifo(gate)
    stage = subprocess.Popen([sys.executable, "-c", ERASE, name, str(gate)])
    assert gate.read_text() == "begun\n"
    while not any(note.stat().st_size for note in (run_directory() / "erasing").glob(f"{name}-*.json")):
        assert stage.poll() is None  # a stage killed before it writes the note would leave an unnamed program
    stage.kill()
    stage.wait()
    approved: list[guard.ApprovedDevice] = []
    row = SheetRow("a", "x", drive.serial, True, "", "drives.tsv line 2")
    printed = io.StringIO()
    monkeypatch.setattr(sys, "stdout", printed)  # pytest's capture loses what is printed while it is read
    waiting = threading.Thread(target=lambda: approved.append(guard.approve(row, drive.device)), daemon=True)
    waiting.start()
    while not (notice := printed.getvalue()).endswith("\n"):
        assert waiting.is_alive(), "the guard did not wait"
    assert f"drive {name}: 'sh -c " in notice
    assert "is still erasing the drive. The stage that started it was killed, and an erase cannot be stopped." in notice
    assert approved == []
    gate.write_text("continue\n")
    waiting.join()
    assert [device.name for device in approved] == [name]
