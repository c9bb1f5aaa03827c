"""SCSI sanitize and format are tracked until they end, and keep the protection type."""

from __future__ import annotations

import pytest
from fake_drives import FakeScsi, reasons

from drivelab.core.errors import UserError
from drivelab.drives.purge import SpoiltError, purge
from drivelab.drives.purge.scsi_erase import parse_progress, parse_protection
from drivelab.drives.tools import Output


@pytest.mark.parametrize("kind", ["block", "crypto", "overwrite"])
def test_scsi_sanitize_is_tracked_until_it_ends(scsi: FakeScsi, kind: str) -> None:
    scsi.ready = [Output(2, "", "test unit ready: Device not ready"), Output(0, "", "")]
    fractions: list[float | None] = []
    result = purge(scsi.approved, f"scsi-sanitize-{kind}", lambda text, fraction: fractions.append(fraction))
    assert [fraction for fraction in fractions if fraction is not None] == [0.0, 0.4999, 1.0]
    (call,) = scsi.called("sg_sanitize")
    assert {f"--{kind}", "--early", "--quick"} <= set(call)
    assert result["leaves"] == ("written once" if kind == "overwrite" else "unwritten")


def test_failed_scsi_sanitize_exits_failure_mode(scsi: FakeScsi) -> None:
    scsi.ready = [Output(3, "", "test unit ready:  Additional sense: Sanitize command failed")]
    with pytest.raises(UserError, match="reports that the operation failed"):
        purge(scsi.approved, "scsi-sanitize-block")
    assert scsi.called("sg_sanitize", "--fail")


@pytest.mark.parametrize(
    ("protection", "options"),
    [
        ("prot_en=0, p_type=0", {"--fmtpinfo=0", "--pfu=0"}),
        ("prot_en=1, p_type=0", {"--fmtpinfo=2", "--pfu=0"}),
        ("prot_en=1, p_type=1", {"--fmtpinfo=3", "--pfu=0"}),
        ("prot_en=1, p_type=2", {"--fmtpinfo=3", "--pfu=1"}),
    ],
)
def test_scsi_format_keeps_the_protection(scsi: FakeScsi, protection: str, options: set[str]) -> None:
    scsi.protection = protection
    assert purge(scsi.approved, "scsi-format")["method"] == "scsi-format"
    (call,) = scsi.called("sg_format")
    assert options <= set(call)
    assert not any(argument.startswith(("--size", "--count", "--resize")) for argument in call)


def test_scsi_format_that_loses_the_protection_is_detected(scsi: FakeScsi) -> None:
    def erase_and_change() -> None:
        scsi.erase()
        scsi.protection = "prot_en=0, p_type=0"

    scsi.protection, scsi.erases = "prot_en=1, p_type=0", erase_and_change
    with pytest.raises(SpoiltError, match="FORMAT UNIT changed the protection type"):
        purge(scsi.approved, "scsi-format")


def test_scsi_commands_must_be_listed_as_supported(scsi: FakeScsi) -> None:
    scsi.supports = set()
    result = purge(scsi.approved)
    assert result["method"] == "trim"
    assert "does not list" in reasons(result)["scsi-sanitize-block"]
    assert "not an ATA drive" in reasons(result)["ata-erase"]


def test_sg3_utils_output_is_parsed() -> None:
    assert parse_progress("Progress indication: 12.34% done\n") == pytest.approx(0.1234)
    assert parse_progress("No progress indication found, iteration 1") is None
    with pytest.raises(UserError, match="could not keep the format"):
        parse_protection("READ CAPACITY (16) not supported")
