"""hdparm output of ATA drives. Samples: one of an emulated drive, others in the format of hdparm 9.65 (identify.c)."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivelab.drives import ata, tools

SAMPLES = Path(__file__).parent / "samples"


def sample(name: str) -> ata.Ata:
    drive = ata.parse_identify((SAMPLES / f"hdparm_{name}.txt").read_text())
    assert drive is not None
    return drive


def test_a_solid_state_drive() -> None:
    drive = sample("ssd")
    assert (drive.model, drive.serial, drive.firmware) == ("EXAMPLE SSD 860 1TB", "S3Z8NB0K123456A", "RVT04B6Q")
    assert drive.security == ata.Security(
        supported=True, enabled=False, locked=False, frozen=False, enhanced_supported=True, erase_min=4,
        enhanced_erase_min=8,
    )  # fmt: skip
    assert drive.trim
    assert drive.after_trim == "zeros"
    assert drive.write_cache_supported


def test_a_frozen_drive() -> None:
    drive = sample("ssd_frozen")
    assert drive.security.frozen
    assert not drive.security.locked
    assert drive.after_trim == "data"
    assert drive.write_cache_supported


def test_a_hard_disk_with_a_password() -> None:
    drive = sample("hdd_locked")
    assert drive.security.enabled
    assert drive.security.locked
    assert not drive.security.frozen
    assert (drive.security.erase_min, drive.security.enhanced_erase_min) == (508, None)
    assert not drive.trim
    assert drive.after_trim is None


def test_a_drive_with_few_features() -> None:
    drive = sample("emulated")
    assert (drive.model, drive.serial, drive.firmware) == ("QEMU-SATA", "QEMUSATA01", "2.5+")
    assert drive.security == ata.Security(False, False, False, False, False, None, None)
    assert not drive.trim


def test_unsupported_security() -> None:
    text = (SAMPLES / "hdparm_ssd.txt").read_text().replace("\t\tsupported\n", "\t(?)\tsupported\n")
    drive = ata.parse_identify(text)
    assert drive is not None
    assert not drive.security.supported
    assert drive.security.enhanced_supported


@pytest.mark.parametrize("text", ["", "\n/dev/sdb:\n", (SAMPLES / "hdparm_not_ata.txt").read_text()])
def test_output_of_other_drives_is_no_ata_drive(text: str) -> None:
    """The last text is hdparm's output for a SCSI drive, with exit status 0."""
    assert ata.parse_identify(text) is None


def test_identify_runs_hdparm(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[tuple[str, ...]] = []

    def run(*command: str) -> tools.Output:
        commands.append(command)
        return tools.Output(5, (SAMPLES / "hdparm_ssd.txt").read_text(), "SG_IO: bad/missing sense data")

    monkeypatch.setattr(tools, "run", run)
    drive = ata.identify("/dev/sdb")
    assert commands == [("hdparm", "-I", "/dev/sdb")]
    assert drive is not None
    assert drive.serial == "S3Z8NB0K123456A"
