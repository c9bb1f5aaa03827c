"""Refusals at plan time that concern attached drives."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivelab.drives import write_cache as drives_write_cache
from drivelab.drives.guard import ApprovedDevice
from drivelab.errors import UserError
from drivelab.stages import planning
from drivelab.stages.planning import Campaign


@pytest.fixture
def campaign(project: Path, monkeypatch: pytest.MonkeyPatch) -> Campaign:
    """A study of pts-iops at full length, whose smallest cells are of 512 bytes, on a drive that the guard approves."""
    Path("config/drives.tsv").write_text(
        "drive\tdevice\tserial\tdestructive\tnote\tendurance_tbw\nfast\t/dev/disk/by-id/nvme-x\tS1\tyes\t\t600\n"
    )
    Path("config/mine.yaml").write_text("name: mine\ndrives: [fast]\nmeasurements: [{protocol: pts-iops}]\n")
    monkeypatch.setattr(
        planning.guard, "approve", lambda row, device: ApprovedDevice("/dev/nvme9n1", "nvme9n1", row.serial, None)
    )
    monkeypatch.setattr(drives_write_cache, "state", lambda name: "on")
    return Campaign.load("config/mine.yaml")


def test_cells_below_the_logical_block_are_refused(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning.sysfs, "logical_block_bytes", lambda name: 4096)
    with pytest.raises(UserError, match=r"drive 'fast', pts-iops: block size 512B.*4KiB.*Nothing was written"):
        campaign.approve_drives()


def test_512e_takes_them(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning.sysfs, "logical_block_bytes", lambda name: 512)
    campaign.approve_drives()


def test_a_drive_that_tells_nothing_of_its_write_cache(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning.sysfs, "logical_block_bytes", lambda name: 512)
    monkeypatch.setattr(drives_write_cache, "state", lambda name: None)
    with pytest.raises(UserError, match=r"/dev/nvme9n1 does not tell.*write_cache: unchanged"):
        campaign.approve_drives()
    study = Path("config/mine.yaml")
    study.write_text(study.read_text() + "write_cache: unchanged\n")
    Campaign.load(study).approve_drives()


def test_the_study_chooses_purge_write_cache_and_limits(campaign: Campaign) -> None:
    subject = campaign.plans[0].plan.subject
    assert (subject["condition"]["purge"], subject["write_cache"]) == ("auto", "off")
    assert "taint" not in subject, "limits that measure nothing again are no part of the plan"
    assert campaign.sheet["fast"].endurance_bytes == 600e12
    study = Path("config/mine.yaml")
    before = campaign.plans[0].plan.digest
    study.write_text(study.read_text() + "class: client\npurge: trim\ntaint: {steal: 1%, remeasure: 2}\n")
    subject = Campaign.load(study).plans[0].plan.subject
    assert (subject["condition"]["purge"], subject["write_cache"]) == ("trim", "on")
    assert subject["taint"] == {"steal_pct": 1.0, "remeasure": 2}
    assert Campaign.load(study).plans[0].plan.digest != before


def test_the_schema_knows_the_methods_of_purging() -> None:
    from drivelab.config.schema import ROOT
    from drivelab.config.yaml_file import load_yaml
    from drivelab.drives.purge import AUTO, METHODS

    schema = load_yaml(ROOT / "workflow/schemas/study.schema.yaml")
    assert sorted(schema["properties"]["purge"]["enum"]) == sorted([AUTO, *METHODS])
