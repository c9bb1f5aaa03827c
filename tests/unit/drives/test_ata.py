"""hdparm output of ATA drives. Samples: one of an emulated drive, others in the format of hdparm 9.65 (identify.c)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from drivelab.drives import ata, tools

SAMPLES = Path(__file__).parent / "samples"


@pytest.mark.parametrize(
    ("name", "fields", "security"),
    [
        ("ssd", ("EXAMPLE SSD 860 1TB", "S3Z8NB0K123456A", "RVT04B6Q", True, "zeros"), (1, 0, 0, 0, 1, 4, 8)),
        ("ssd_frozen", ("EXAMPLE SSD 860 1TB", "S3Z8NB0K123456A", "RVT04B6Q", True, "data"), (1, 0, 0, 1, 1, 2, 2)),
        ("hdd_locked", ("EXAMPLE HDD 4000-68N32N0", "EX-WCC7K1234567", "82.00A82", False, None),
         (1, 1, 1, 0, 1, 508, None)),
        ("emulated", ("QEMU-SATA", "QEMUSATA01", "2.5+", False, None), (0, 0, 0, 0, 0, None, None)),
    ],
)  # fmt: skip
def test_a_drive_of_a_sample(name: str, fields: Any, security: Any) -> None:
    model, serial, firmware, trim, after_trim = fields
    assert ata.parse_identify((SAMPLES / f"hdparm_{name}.txt").read_text()) == ata.Ata(
        model, serial, firmware, ata.Security(*security), trim, after_trim, write_cache_supported=True
    )


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
