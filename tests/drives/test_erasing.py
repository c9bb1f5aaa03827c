"""An erase whose stage was killed: the guard approves the drive when the erase has ended, and not before."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from drivelab.config.drives_sheet import SheetRow
from drivelab.drives import guard
from drivelab.run_directory import run_directory
from drivelab.virtual import manage

pytestmark = pytest.mark.device
ERASE = """
import sys
from drivelab.drives import erasing
erasing.run(sys.argv[1], "sh", "-c", f"echo begun >{sys.argv[2]}; read answer <{sys.argv[2]}; sync")
"""


def test_the_guard_waits_for_it(drive: manage.VirtualDrive, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    name, gate = Path(drive.device).name, tmp_path / "gate"
    os.mkfifo(gate)
    stage = subprocess.Popen([sys.executable, "-c", ERASE, name, str(gate)])
    assert gate.read_text() == "begun\n"
    while not any(note.stat().st_size for note in (run_directory() / "erasing").glob(f"{name}-*.json")):
        assert stage.poll() is None  # killed before it writes the note, the stage would leave a program without a name
    stage.kill()
    stage.wait()
    approved: list[guard.ApprovedDevice] = []
    row = SheetRow("a", "x", drive.serial, True, "", "drives.tsv line 2")
    waiting = threading.Thread(target=lambda: approved.append(guard.approve(row, drive.device)), daemon=True)
    waiting.start()
    while not (said := capfd.readouterr().out):
        assert waiting.is_alive(), "it did not wait"
    assert f"drive {name}: 'sh -c " in said
    assert "is still erasing the drive. The stage that started it was killed, and an erase cannot be stopped." in said
    assert approved == []
    gate.write_text("go on\n")
    waiting.join()
    assert [one.name for one in approved] == [name]
