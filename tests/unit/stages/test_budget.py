"""What a study may take at the most: spent and yet to come, by host and by drive."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivelab.errors import UserError
from drivelab.stages.budget import exceeded, require_within, written_in
from drivelab.stages.condition import precondition, purge
from drivelab.stages.estimate import Trace
from drivelab.stages.measure import measure
from drivelab.stages.outlook import outlook
from drivelab.stages.planning import Campaign
from drivelab.virtual.clock import VirtualClockDrive
from drivelab.virtual.kept import KEPT_DRIVES
from drivelab.virtual.model import DriveModel

STUDY = """\
name: mine
results: results
clock: virtual
drives: [op7, op28]
measurements:
  - {protocol: pts-write-saturation, scale: demo, set: {soak: {slice: 1s, until: {time: 2s}}}}
"""


def words(more: str) -> list[str]:
    Path("config/mine.yaml").write_text(STUDY + more)
    campaign = Campaign.load("config/mine.yaml", everywhere=True)
    return exceeded(campaign, outlook(campaign))


def test_without_a_budget_there_is_none(project: Path) -> None:
    assert words("") == []


def test_what_fits(project: Path) -> None:
    assert words("budget: {time: 1d, written: 1TB}\n") == []


def test_time_is_the_busiest_hosts_shared_by_its_places(project: Path) -> None:
    Path("config/mine.yaml").write_text(STUDY)
    campaign = Campaign.load("config/mine.yaml")
    most_s = sum(row.estimate.most_s for row in outlook(campaign))
    (one,) = words(f"budget: {{time: {0.75 * most_s}s}}\n")
    assert "the host may take" in one
    assert "1.33 times" in one
    assert words(f"budget: {{time: {0.75 * most_s}s}}\nconcurrency: 2\n") == []


def test_hosts_are_reckoned_one_by_one(project: Path) -> None:
    sheet = Path("config/drives.tsv")
    lines = [line.split("\t") for line in sheet.read_text().splitlines()]
    hosts = {"drive": "host", "op7": "bench-a", "op28": "bench-b"}
    sheet.write_text("".join("\t".join([*line, hosts.get(line[0], "")]) + "\n" for line in lines))
    Path("config/mine.yaml").write_text(STUDY)
    rows = outlook(Campaign.load("config/mine.yaml", everywhere=True))
    longest_s, other_s = sorted((row.estimate.most_s for row in rows), reverse=True)
    assert words(f"budget: {{time: {1.01 * longest_s}s}}\n") == []
    found = words(f"budget: {{time: {0.99 * min(longest_s, other_s)}s}}\n")
    assert len(found) == 2
    assert "host 'bench-a'" in found[0]


def test_every_drive_that_may_be_written_too_much_is_named(project: Path) -> None:
    found = words("budget: {written: 1MB}\n")
    assert [("op7" in one, "op28" in one) for one in found] == [(True, False), (False, True)]
    campaign = Campaign.load("config/mine.yaml")
    with pytest.raises(UserError, match=r"config/mine.yaml: key 'budget' may be exceeded.*op7.*op28.*Nothing was wri"):
        require_within(campaign, outlook(campaign))


def test_what_was_written_already_counts(project: Path) -> None:
    Path("config/mine.yaml").write_text(STUDY)
    for one in Campaign.load("config/mine.yaml").plans:
        purge(one.plan, Path("purged"))
        precondition(one.plan, Path("purged"), Path("sealed"))
        measure(one.plan, Path("sealed"))
    model = one.plan.subject["drive"]["virtual"]
    state = Path("results") / KEPT_DRIVES / f"{model['serial']}.state"
    drive = VirtualClockDrive(DriveModel.from_mapping("op28", model), state)
    written_bytes = drive.counters()["host_write_bytes"]
    assert words(f"budget: {{written: {written_bytes * 1.02:.0f}B}}\n") == []
    assert any("op28" in one for one in words(f"budget: {{written: {written_bytes * 0.98:.0f}B}}\n"))


def test_a_share_of_an_endurance_that_nobody_knows(project: Path) -> None:
    Path("config/drives.tsv").write_text(
        "drive\tdevice\tserial\tdestructive\tnote\tendurance_tbw\n"
        "a\t/dev/disk/by-id/a\tA\tyes\t\t600\nb\t/dev/disk/by-id/b\tB\tyes\t\t\n"
    )
    study = STUDY.replace("op7, op28", "a").replace("clock: virtual\n", "").replace("scale: demo, ", "")
    Path("config/mine.yaml").write_text(study + "budget: {endurance: 0.0001%}\n")
    campaign = Campaign.load("config/mine.yaml")
    (one,) = exceeded(campaign, outlook(campaign))
    assert "drive 'a'" in one
    assert "0.0001 % of its endurance" in one
    assert "if its capacity is" in one
    Path("config/mine.yaml").write_text(study.replace("[a]", "[b]") + "budget: {endurance: 5%}\n")
    campaign = Campaign.load("config/mine.yaml")
    with pytest.raises(UserError, match=r"'budget.endurance'.*drive 'b'.*endurance_tbw"):
        exceeded(campaign, outlook(campaign))


def test_lines_of_a_journal() -> None:
    mix = {"read_share": 65}
    span = {"io_started_s": 5.0, "io_ended_s": 15.0}
    cell = {"event": "cell", "workload": mix, "metrics": {"bandwidth_mib_s": 100.0}, **span}
    assert written_in(cell, {}) == pytest.approx(1000 * 2**20 * 0.35)
    assert written_in({**cell, "event": "tainted"}, {}) == written_in(cell, {})
    assert written_in({"event": "soak", "bytes": 1000, "workload": mix}, {}) == pytest.approx(350)
    assert written_in({"event": "fill", "bytes": 7}, {}) == 7
    replay = {"event": "replay", "trace": "t", "metrics": {"bytes": 400}}
    assert written_in(replay, {"t": Trace(1.0, write_bytes=30, read_bytes=10)}) == 300
    assert written_in(replay, {"t": Trace(1.0, 0, 0)}) == written_in({"event": "seal"}, {}) == 0
