"""ATA security erase leaves no password on the drive, regardless of what hdparm reports."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_drives import FakeAta, reasons

from drivelab.core.errors import UserError
from drivelab.drives.purge import SpoiltError, purge


@pytest.mark.parametrize("method", ["ata-erase", "ata-erase-enhanced"])
def test_ata_erase_leaves_no_password(ata: FakeAta, method: str) -> None:
    result = purge(ata.approved, method)
    assert ata.password is None
    assert result["content"].endswith("read as zeros")
    option = "--security-erase-enhanced" if "enhanced" in method else "--security-erase"
    assert [call[3] for call in ata.called("hdparm", "--user-master")] == ["--security-set-pass", option]


def test_failed_ata_erase_with_status_0_removes_its_password(ata: FakeAta) -> None:
    ata.erase_works = False
    with pytest.raises(
        UserError, match=r"the security erase failed, although hdparm says.*drivelab removed the password"
    ) as error:
        purge(ata.approved, "ata-erase")
    assert not isinstance(error.value, SpoiltError)
    assert ata.password is None
    assert purge(ata.approved)["method"] == "trim"


def test_remaining_ata_password_stops_auto(ata: FakeAta) -> None:
    ata.erase_works = ata.gives_up_password = False
    with pytest.raises(SpoiltError, match=r"may still have the password 'drivelab'.*--security-unlock drivelab"):
        purge(ata.approved)
    assert not ata.called("blkdiscard")


def test_interrupted_ata_erase_leaves_no_password(ata: FakeAta) -> None:
    def interrupt(text: str, fraction: float | None) -> None:
        if text == "ATA security erase":
            raise KeyboardInterrupt

    ata.erase_works = False
    with pytest.raises(KeyboardInterrupt):
        purge(ata.approved, "ata-erase", interrupt)
    assert ata.called("--security-erase")
    assert ata.password is None


def test_ata_erase_that_erases_nothing_is_detected(ata: FakeAta, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ata, "erase", lambda byte=0: None)
    with pytest.raises(UserError, match=r"not purged by ata-erase .*canaries still read back"):
        purge(ata.approved, "ata-erase")
    assert ata.password is None


def test_drive_that_accepts_no_password_is_refused(ata: FakeAta) -> None:
    ata.takes_password = False
    with pytest.raises(UserError, match="did not accept the temporary password"):
        purge(ata.approved, "ata-erase")


@pytest.mark.parametrize(
    ("attribute", "value", "reason"),
    [
        ("frozen", True, r"frozen; .*rtcwake .*unplug the drive's power"),
        ("supported", False, "no ATA security"),
        ("password", "secret", r"a password is set.*--security-disable drivelab"),
        ("enhanced", False, "no enhanced erase"),
    ],
)
def test_ata_erase_is_refused_with_reason(ata: FakeAta, attribute: str, value: object, reason: str) -> None:
    setattr(ata, attribute, value)
    with pytest.raises(UserError, match=reason):
        purge(ata.approved, "ata-erase-enhanced")
    assert not ata.called("hdparm", "--user-master")


def test_frozen_ata_drive_is_trimmed_by_auto(ata: FakeAta) -> None:
    ata.frozen = True
    result = purge(ata.approved)
    assert result["method"] == "trim"
    assert "frozen" in reasons(result)["ata-erase"]


def test_ata_erase_behind_a_usb_bridge_is_refused(ata: FakeAta, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "drivelab.drives.purge.ata_erase.block_dir", lambda name: Path("/sys/devices/pci0/usb1/1-1/host0/block/sdz")
    )
    with pytest.raises(UserError, match="USB bridge"):
        purge(ata.approved, "ata-erase")
