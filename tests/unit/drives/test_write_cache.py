"""The write cache state is what the drive reports after the change."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from storage_places import Place

from drivelab.core.errors import UserError
from drivelab.drives import write_cache
from drivelab.drives.guard import ApprovedDevice
from drivelab.drives.identified import Identity
from drivelab.drives.tools import Output
from drivelab.drives.undo import Command, Write, perform

NVME = ApprovedDevice("/dev/nvme0n1", "nvme0n1", "S1", None, identity=Identity("S1", 512))
DISK = ApprovedDevice("/dev/sdz", "sdz", "S1", None, identity=Identity("S1", 512))


@dataclass
class Drive:
    """A fake drive that answers nvme-cli and hdparm."""

    vwc: int = 7
    on: bool = True
    obeys: bool = True
    ata_cache: bool = True
    calls: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, program: str, *arguments: str, timeout_s: float = 60.0) -> Output:
        self.calls.append((program, *arguments))
        if program == "hdparm":
            return self._hdparm(arguments[0])
        if arguments[0] == "id-ctrl":
            return Output(0, json.dumps({"vwc": self.vwc}), "")
        if arguments[0] == "set-feature" and self.obeys:
            self.on = arguments[-1] == "--value=1"
        value = f"{int(self.on):#010x}" if self.on else "00000000"
        return Output(0, f"{arguments[0]}:0x06 (Volatile Write Cache), Current value:{value}\n", "")

    def _hdparm(self, option: str) -> Output:
        if option == "-I":
            feature = "\t   *\tWrite cache\n" if self.ata_cache else ""
            identity = f"ATA device, x\n\tModel Number: FAKE\nCommands/features:\n{feature}"
            return Output(0, identity, "")
        if option in ("-W0", "-W1") and self.obeys:
            self.on = option == "-W1"
        return Output(0, f"\n/dev/sdz:\n write-caching = {int(self.on):2d} ({'on' if self.on else 'off'})\n", "")


@pytest.fixture
def drive(monkeypatch: pytest.MonkeyPatch) -> Drive:
    drive = Drive()
    monkeypatch.setattr("drivelab.drives.tools.run", drive.run)
    monkeypatch.setattr("drivelab.drives.nvme.controller_of", lambda name, sys_root=None: "/dev/nvme0")
    return drive


def disk(root: Path, cache_type: str | None, vendor: str = "SEAGATE") -> Path:
    """Make a fake /sys with sdz; return the file `cache_type`."""
    place, file = Place(root), "device/scsi_disk/0:0:0:0/cache_type"
    files = {} if cache_type is None else {file: cache_type}
    place.disk("sdz", "pci0/host0/target0:0:0/0:0:0:0", device__vendor=f"{vendor:8}",
               queue__write_cache="write back", **files)  # fmt: skip
    return (place.directory("sdz") / file).resolve()


def test_nvme_cache_is_switched_and_back(drive: Drive) -> None:
    assert write_cache.state("nvme0n1") == "on"
    undo = write_cache.change(NVME, on=False)
    assert undo == Command(("nvme", "set-feature", "/dev/nvme0", "--feature-id=0x6", "--value=1"))
    assert write_cache.state("nvme0n1") == "off"
    drive.run(*undo.argv)
    assert write_cache.state("nvme0n1") == "on"


@pytest.mark.parametrize("on", [True, False])
def test_a_correct_state_is_not_changed(drive: Drive, on: bool) -> None:
    drive.on = on
    assert write_cache.change(NVME, on=on) is None
    assert not any("set-feature" in call for call in drive.calls)


def test_nvme_drive_without_a_cache(drive: Drive) -> None:
    drive.vwc = 6
    assert write_cache.state("nvme0n1") == "none"
    assert write_cache.change(NVME, on=False) is None
    with pytest.raises(UserError, match="no volatile write cache"):
        write_cache.change(NVME, on=True)


def test_a_rejected_setting_is_detected(drive: Drive) -> None:
    drive.obeys = False
    with pytest.raises(UserError, match="the write cache is on after it was switched off"):
        write_cache.change(NVME, on=False)


@pytest.mark.parametrize(
    ("text", "state"),
    [("write back", "on"), ("write back, no read (daft)", "on"), ("write through", "off"), ("none", "off")],
)
def test_state_of_a_sas_drive(tmp_path: Path, drive: Drive, text: str, state: str) -> None:
    disk(tmp_path, text)
    assert write_cache.state("sdz", tmp_path / "sys") == state


@pytest.mark.parametrize("before", ["write back", "write back, no read (daft)"])
def test_kernel_switches_a_sas_drive_and_restores_the_exact_text(tmp_path: Path, drive: Drive, before: str) -> None:
    file = disk(tmp_path, before)
    undo = write_cache.change(DISK, on=False, sys_root=tmp_path / "sys")
    assert undo == Write(str(file), before)
    assert file.read_text() == "write through"
    assert perform(undo) is None
    assert file.read_text().strip() == before


def test_the_block_layers_setting_is_never_changed(tmp_path: Path, drive: Drive) -> None:
    disk(tmp_path, "write back")
    view = tmp_path / "sys/class/block/sdz/queue/write_cache"
    write_cache.change(DISK, on=False, sys_root=tmp_path / "sys")
    assert view.read_text() == "write back\n"


def test_a_kernel_that_changes_nothing_is_detected(
    tmp_path: Path, drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk(tmp_path, "write back")
    monkeypatch.setattr(Path, "write_text", lambda self, text: len(text))
    with pytest.raises(UserError, match="the write cache is on after it was switched off"):
        write_cache.change(DISK, on=False, sys_root=tmp_path / "sys")


def test_hdparm_is_used_without_a_kernel_cache_type(tmp_path: Path, drive: Drive) -> None:
    disk(tmp_path, None, vendor="ATA")
    undo = write_cache.change(DISK, on=False, sys_root=tmp_path / "sys")
    assert undo == Command(("hdparm", "-W1", "/dev/sdz"))
    assert write_cache.state("sdz", tmp_path / "sys") == "off"


def test_ata_drive_without_a_cache(tmp_path: Path, drive: Drive) -> None:
    drive.ata_cache = False
    disk(tmp_path, "write through", vendor="ATA")
    assert write_cache.state("sdz", tmp_path / "sys") == "none"


def test_hdparm_is_not_asked_about_sas_drives(tmp_path: Path, drive: Drive) -> None:
    """hdparm reports no write cache for SAS drives."""
    disk(tmp_path, None)
    assert write_cache.state("sdz", tmp_path / "sys") is None
    assert not drive.calls


def test_a_drive_that_reports_no_cache(drive: Drive) -> None:
    assert write_cache.state("loop0") is None
    with pytest.raises(UserError, match="does not report a write cache"):
        write_cache.change(ApprovedDevice("/dev/loop0", "loop0", "V", "v", identity=Identity("V", 512)), on=False)


def test_undo_is_known_before_the_change(drive: Drive) -> None:
    undo = write_cache.undo_of(NVME, on=False)
    assert drive.on
    assert undo == write_cache.change(NVME, on=False)
