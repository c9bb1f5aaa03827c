"""sg3_utils output of SCSI drives, and SAS links in sysfs. Samples: sg3_utils 1.47 and the kernel's scsi_debug."""

from __future__ import annotations

from pathlib import Path

import pytest
from sysfs_drives import Machine

from drivelab.drives import scsi, tools

SAMPLES = Path(__file__).parent / "samples"


def sample(name: str) -> str:
    return (SAMPLES / f"sg_{name}.txt").read_text()


def test_unmapped_blocks_read_as_zeros_only_if_the_drive_says_so() -> None:
    assert scsi.parse_unmapped_reads_zeros(sample("readcap_512e"))
    assert not scsi.parse_unmapped_reads_zeros("sg_readcap failed: Illegal request")


def test_logs() -> None:
    assert scsi.parse_temperature_c(sample("logs_temperature")) == 38
    assert scsi.parse_percentage_used_pct(sample("logs_solid_state")) == 3
    assert scsi.parse_percentage_used_pct(sample("logs_refused")) is None
    assert scsi.parse_temperature_c("  Current temperature = <not available>\n") is None


def test_sanitize_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(program: str, *arguments: str) -> tools.Output:
        known = "--opcode=0x48,3" in arguments or "--opcode=0x48,1" in arguments
        return tools.Output(0, sample("opcodes_supported" if known else "opcodes_not_supported"), "")

    monkeypatch.setattr(tools, "run", run)
    assert scsi.sanitize_methods("/dev/sdb") == {"crypto", "overwrite"}
    monkeypatch.setattr(tools, "run", lambda *_: tools.Output(9, "Command is supported", "cannot be asked"))
    assert scsi.sanitize_methods("/dev/sdb") == frozenset()


@pytest.mark.parametrize(("protocols", "is_sas"), [("ssp", True), ("smp, ssp", True), ("sata", False), ("none", False)])
def test_drives_that_use_sas(tmp_path: Path, protocols: str, is_sas: bool) -> None:
    machine = Machine(tmp_path)
    machine.sas_drive(protocols=protocols)
    assert scsi.is_sas("sdb", machine.sys) == is_sas
    assert not scsi.is_sas("sdc", machine.sys)


def test_links(tmp_path: Path) -> None:
    wide, down = Machine(tmp_path / "wide"), Machine(tmp_path / "down")
    wide.sas_drive(phys=2)
    assert scsi.sas_link("sdb", wide.sys) == scsi.Link("12.0 Gbit", "22.5 Gbit", 2)
    down.sas_drive(negotiated="Unknown")
    assert scsi.sas_link("sdb", down.sys) == scsi.Link(None, "22.5 Gbit", 1)
    assert scsi.sas_link("sda", down.sys) is None
