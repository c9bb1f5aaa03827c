"""Platforms with a file system: what the plans hold, and what does not fit a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivelab.campaign.estimate import estimate
from drivelab.campaign.planning import Campaign
from drivelab.core.errors import UserError
from drivelab.core.programs import packages
from drivelab.plan.file_system import LEAST_BYTES, MIB, FileSystem
from drivelab.plan.fitting import refuse_kind, refuse_unfit
from drivelab.plan.plan import Plan
from drivelab.plan.study import load_study
from drivelab.virtual import manage

STUDY = """\
name: mine
results: results
clock: wall
drives: [op7]
platforms:
  plain: {host: any}
  ext4: {host: any, file_system: {type: ext4}}
  tuned: {host: any, file_system: {type: ext4, mkfs: [-b, 4096, -O, ^has_journal, -E, "stride=32,stripe_width=64"],
                                   mount: [noatime, data=writeback], file: 25%}}
measurements:
  - {protocol: filesystem-comparison}
"""


@pytest.fixture(autouse=True)
def _real_time(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manage, "possible", lambda: None)


def load(text: str = STUDY) -> Campaign:
    Path("config/mine.yaml").write_text(text)
    return Campaign.load("config/mine.yaml")


def plans(text: str = STUDY) -> dict[str, Plan]:
    return {planned.plan.drive: planned.plan for planned in load(text).plans}


def one(file_system: str, protocol: str = "filesystem-comparison", more: str = "") -> str:
    return (
        f"name: mine\nclock: wall\ndrives: [op7]\nplatforms:\n  p: {{host: any, file_system: {file_system}}}\n"
        f"measurements: [{{protocol: {protocol}}}]\n{more}"
    )


def test_the_plan_holds_how_the_file_system_is_made_and_mounted() -> None:
    made = plans()
    assert list(made) == ["op7@plain", "op7@ext4", "op7@tuned"]
    assert made["op7@ext4"].subject["file_system"] == {"type": "ext4", "mkfs": [], "mount": [], "file_share": 0.4}
    assert made["op7@tuned"].subject["file_system"] == {
        "type": "ext4", "mkfs": ["-b", "4096", "-O", "^has_journal", "-E", "stride=32,stripe_width=64"],
        "mount": ["noatime", "data=writeback"], "file_share": 0.25,
    }  # fmt: skip
    assert len({plan.digest for plan in made.values()}) == 3
    assert [plan.lasts for plan in made.values()] == [True, False, False]
    again = Plan(made["op7@tuned"].subject, {}).file_system
    assert again == load_study(Path("config/mine.yaml")).platforms[2].file_system


def test_reads_need_a_fill() -> None:
    made = plans()["op7@ext4"]
    condition = {key: value for key, value in made.subject["condition"].items() if key != "fill"}
    refuse_kind(made)
    with pytest.raises(UserError, match="reads without a fill"):
        refuse_kind(Plan({**made.subject, "condition": condition}, made.context))


def list_folder(folder: Path) -> None:
    Path("config/drives.tsv").write_text(
        f"drive\tdevice\tserial\tdestructive\tnote\tkind\tsize\nop7\t{folder}\tX\tno\t\tfile\t16MiB\n"
    )


def test_reads_of_a_file_in_a_folder_need_a_fill_too(tmp_path: Path) -> None:
    list_folder(tmp_path)
    study = "name: mine\nclock: wall\ndrives: [op7]\nmeasurements: [{protocol: PROTOCOL}]\npurge: none\n"
    load(study.replace("PROTOCOL", "quick"))
    with pytest.raises(UserError, match="reads without a fill"):
        load(study.replace("PROTOCOL", "quick-reads"))


def test_a_folder_gets_no_file_system(tmp_path: Path) -> None:
    list_folder(tmp_path)
    with pytest.raises(UserError, match="makes no file system on the kind 'file'"):
        load(one("{type: ext4}", "quick"))


@pytest.mark.parametrize("kind", LEAST_BYTES)
def test_a_drive_that_is_too_small_is_refused(kind: str) -> None:
    plan = plans(one("{type: ext4}"))["op7@p"]
    plan = Plan({**plan.subject, "file_system": FileSystem(kind).to_mapping()}, plan.context)
    refuse_unfit(plan, LEAST_BYTES[kind], 4096)
    with pytest.raises(UserError, match=f"{kind} needs at least"):
        refuse_unfit(plan, LEAST_BYTES[kind] - 1, 4096)


def test_the_file_has_one_size_on_every_file_system() -> None:
    for capacity_bytes in (32 * MIB, 10**12 + 512, 3_840_755_982_336):
        sizes = {FileSystem(kind).file_bytes(capacity_bytes) for kind in LEAST_BYTES}
        assert len(sizes) == 1
        (size,) = sizes
        assert size % MIB == 0
        assert 0 <= 0.4 * capacity_bytes - size < MIB
    assert {f"mkfs.{kind}" for kind in LEAST_BYTES} <= packages().keys()


def test_the_estimate_is_that_of_the_file() -> None:
    made = plans()
    drive, small, smaller = (
        estimate(made[name], 10 << 30, 100.0, ()) for name in ("op7@plain", "op7@ext4", "op7@tuned")
    )
    fill_s = (10 << 30) / 100 / MIB
    assert drive.least_s - small.least_s == pytest.approx(0.6 * fill_s, rel=0.01)
    assert small.least_bytes - smaller.least_bytes == pytest.approx(0.15 * (10 << 30), rel=0.01)
