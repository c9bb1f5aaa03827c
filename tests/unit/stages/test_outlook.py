"""What `drivelab plan` says beforehand, against what the virtual clock then does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mini_project import STUDY

from drivelab.recording.writer import read_journal
from drivelab.stages.commands import fio_commands
from drivelab.stages.condition import precondition, purge
from drivelab.stages.estimate import Estimate, Trace, assumed_mib_s, estimate
from drivelab.stages.measure import measure
from drivelab.stages.outlook import Outlook, outlook
from drivelab.stages.planning import Campaign


@pytest.fixture
def campaign(project: Path) -> Campaign:
    Path("config/mini.yaml").write_text(STUDY)
    return Campaign.load("config/mini.yaml")


def row(**change: object) -> Outlook:
    facts: dict[str, object] = {
        "drive": "a", "device": "/dev/nvme0n1", "serial": "S1", "virtual": False, "model": "Maker 1",
        "capacity_bytes": 2 * 10**12, "holds": ("gpt on nvme0n1", "ext4 'data' on nvme0n1p1"), "to_do": 3,
        "estimate": Estimate(3600, 7200, 4e12, 8e12), "bandwidth_mib_s": 2000.0, "endurance_bytes": 600e12,
    }  # fmt: skip
    return Outlook(**{**facts, **change})  # type: ignore[arg-type]


def test_what_is_lost_and_worn_is_said() -> None:
    text = "\n".join(row().lines())
    assert "Maker 1, serial S1, 1.82 TiB, /dev/nvme0n1" in text
    assert "will be erased: gpt on nvme0n1, ext4 'data' on nvme0n1p1" in text
    assert "will be written: 3.64 TiB to 7.28 TiB, 0.67 % to 1.3 % of its rated 600 TB" in text
    assert "will take: 1 h 00 min to 2 h 00 min at an assumed 2000 MiB/s" in text
    assert "endurance is not in the drive sheet" in "\n".join(row(endurance_bytes=None).lines())
    little = "\n".join(row(estimate=Estimate(1, 1, 1e6, 1e10)).lines())
    assert "under 0.01 % of its rated 600 TB" in little
    assert row(to_do=0).lines()[0].endswith("nothing will be written")


def test_a_drive_of_the_virtual_clock(campaign: Campaign) -> None:
    rows = outlook(campaign)
    assert [one.drive for one in rows] == ["op7", "op28"]
    assert all(one.virtual and one.to_do == 3 for one in rows)
    assert "in simulated time" in rows[0].lines()[-1]


def test_what_is_written_lies_within_the_estimate(campaign: Campaign) -> None:
    plan = next(one.plan for one in campaign.plans if one.plan.measurement == "pts-iops")
    span = estimate(plan, campaign.capacity_bytes(plan), assumed_mib_s(plan, None), Trace(0.0, 0))
    purge(plan, Path("purged.json"))
    precondition(plan, Path("purged.json"), Path("conditioned.json"))
    measure(plan, Path("conditioned.json"))
    seals = [line["seal"]["wear"]["sectors_written"] for line in read_journal(plan.recording_path)
             if line["event"] == "seal"]  # fmt: skip
    assert (seals[-1] - seals[0]) * 512 == span.least_bytes, "the fill is known exactly"
    assert span.least_bytes < span.most_bytes


def test_every_cell_has_its_command(campaign: Campaign) -> None:
    plan = next(one.plan for one in campaign.plans if one.plan.measurement == "pts-iops")
    commands = list(fio_commands(plan, "/dev/x", 64 << 20, 4096))
    purposes = [purpose for purpose, _ in commands]
    assert purposes[0] == "preconditioning"
    assert len(commands) == 1 + len(plan.subject["measure"][0]["loop"]["cells"])
    assert all(command.startswith("fio --name=cell --filename=/dev/x ") for _, command in commands)
    seeds = {re.search(r"--randseed=(\d+)", command)[1] for _, command in commands}  # type: ignore[index]
    assert len(seeds) == len(commands)


def test_the_commands_are_those_that_are_run(campaign: Campaign) -> None:
    plan = next(one.plan for one in campaign.plans if one.plan.measurement == "pts-write-saturation")
    (_, command), *_ = fio_commands(plan, "/dev/x", 64 << 20, 4096)
    assert "--status-interval=0.5" in command
    assert "--runtime=5000ms" in command
    assert f"--randseed={plan.seed('cells/0-soak-part1')}" in command


def test_a_replay_is_named(campaign: Campaign) -> None:
    plan = next(one.plan for one in campaign.plans if one.plan.measurement == "trace-replay")
    assert [purpose for purpose, _ in fio_commands(plan, "/dev/x", 64 << 20, 4096)][-1] == "replay of sqlite"
