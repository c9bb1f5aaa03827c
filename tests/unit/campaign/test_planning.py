"""Planning: what a plan holds, the drives that it approves, and import cost."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from imports import modules_after

from drivelab.campaign import planning, subjects
from drivelab.campaign.planning import Campaign
from drivelab.core.errors import UserError
from drivelab.drives import write_cache as drives_write_cache
from drivelab.drives.guard import ApprovedDevice
from drivelab.drives.identified import Identity
from drivelab.figures.over_drives import figures_over_drives
from drivelab.workflow.layout import Layout


@pytest.fixture
def campaign(project: Path, monkeypatch: pytest.MonkeyPatch) -> Campaign:
    """A study of pts-iops at full length, whose smallest cells have 512 bytes, on an approved drive."""
    Path("config/drives.tsv").write_text(
        "drive\tdevice\tserial\tdestructive\tnote\tendurance_tbw\nfast\t/dev/disk/by-id/nvme-x\tS1\tyes\t\t600\n"
    )
    Path("config/mine.yaml").write_text("name: mine\ndrives: [fast]\nmeasurements: [{protocol: pts-iops}]\n")
    device = ApprovedDevice("/dev/nvme9n1", "nvme9n1", "S1", None, identity=Identity("S1", 10**12))
    monkeypatch.setattr(subjects.guard, "approve", lambda row, path: device)
    monkeypatch.setattr(drives_write_cache, "state", lambda name: "on")
    monkeypatch.setattr(planning.sysfs, "capacity_bytes", lambda name: 10**12)
    return Campaign.load("config/mine.yaml")


def test_cells_below_the_logical_block_are_refused(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning.sysfs, "logical_block_bytes", lambda name: 4096)
    with pytest.raises(UserError, match=r"drive 'fast', pts-iops: block size 512B.*4KiB.*Nothing was written"):
        campaign.approve_drives()


def test_a_drive_without_remaining_work_is_not_checked(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subjects.guard, "approve", lambda row, device: pytest.fail("the guard was called"))
    monkeypatch.setattr(drives_write_cache, "state", lambda name: pytest.fail("the drive was read"))
    (planned,) = campaign.plans
    planned.plan.recording_path.mkdir(parents=True)
    (planned.plan.recording_path / "recording.json").touch()
    again = Campaign.load("config/mine.yaml")
    again.approve_drives()
    assert (again.to_do, again.real_drives(), again.needs_fio) == ([], [], False)


def test_a_512e_drive_accepts_512_byte_cells(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning.sysfs, "logical_block_bytes", lambda name: 512)
    campaign.approve_drives()


def test_a_drive_that_does_not_report_its_write_cache_is_refused(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning.sysfs, "logical_block_bytes", lambda name: 512)
    monkeypatch.setattr(drives_write_cache, "state", lambda name: None)
    with pytest.raises(UserError, match=r"/dev/nvme9n1 does not report.*write_cache: unchanged"):
        campaign.approve_drives()
    study = Path("config/mine.yaml")
    study.write_text(study.read_text() + "write_cache: unchanged\n")
    Campaign.load(study).approve_drives()


@pytest.mark.usefixtures("campaign")
def test_a_drive_and_a_part_of_it_are_not_in_one_study() -> None:
    Path("config/drives.tsv").write_text(
        "drive\tdevice\tserial\tdestructive\tnote\tkind\tmembers\nfast\t/dev/disk/by-id/nvme-x\tS1\tyes\t\t\t\n"
        "part\t/dev/disk/by-partuuid/0b1c-01\t0b1c-01\tyes\t\tpartition\tS1 S2\n"
    )
    study = Path("config/mine.yaml")
    study.write_text(study.read_text().replace("[fast]", "[part, fast]"))
    with pytest.raises(UserError, match="names 'fast' and its partition 'part', which erasing the drive would remove"):
        Campaign.load(study)


@pytest.mark.usefixtures("campaign")
def test_a_state_of_an_array_needs_an_array() -> None:
    study = Path("config/mine.yaml")
    study.write_text(study.read_text().replace("{protocol: ", "{array_state: degraded, protocol: ", 1))
    with pytest.raises(UserError, match="it has no array that could be degraded; remove 'array_state'"):
        Campaign.load(study)


def test_the_study_chooses_purge_write_cache_and_limits(campaign: Campaign) -> None:
    subject = campaign.plans[0].plan.subject
    assert (subject["condition"]["purge"], subject["write_cache"]) == ("auto", "off")
    assert "taint" not in subject, "limits without remeasure are not part of the plan"
    assert campaign.sheet["fast"].endurance_bytes == 600e12
    study = Path("config/mine.yaml")
    before = campaign.plans[0].plan.digest
    study.write_text(study.read_text() + "class: client\npurge: trim\ntaint: {steal: 1%, remeasure: 2}\n")
    subject = Campaign.load(study).plans[0].plan.subject
    assert (subject["condition"]["purge"], subject["write_cache"]) == ("trim", "on")
    assert subject["taint"] == {"steal_pct": 1.0, "remeasure": 2}
    assert Campaign.load(study).plans[0].plan.digest != before


def test_a_study_that_leaves_out_the_purge_is_reduced(campaign: Campaign) -> None:
    """The label then comes with every figure and page of the measurement."""
    assert campaign.plans[0].altered == ()
    study = Path("config/mine.yaml")
    study.write_text(study.read_text() + "purge: none\n")
    (planned,) = Campaign.load(study).plans
    assert planned.altered == ("not purged: the protocol requires a purge, the study sets purge: none",)
    assert (planned.plan.subject["condition"]["purge"], planned.plan.subject["condition"]["not_purged"]) == (
        "none",
        True,
    )
    assert planned.plan.digest != campaign.plans[0].plan.digest


def test_each_protocol_has_its_write_cache_and_class(project: Path) -> None:
    study = Path("config/mine.yaml")
    text = (
        "name: mine\ndrives: [op7-512e]\nclock: virtual\nmeasurements:\n"
        "  - {protocol: stec-read-shares}\n  - {protocol: iometer-four-corners, scale: demo}\n"
        "  - {protocol: tkperf-iops}\n  - {protocol: stec-block-sizes, class: client}\n"
    )

    def chosen(more: str = "") -> list[tuple[str, str, str | None, bool]]:
        study.write_text(text + more)
        return [
            (row.plan.measurement, row.plan.subject["class"]["name"], row.plan.subject["write_cache"],
             any(change.startswith("write cache: ") for change in row.altered))
            for row in Campaign.load(study).plans
        ]  # fmt: skip

    assert chosen() == [
        ("stec-read-shares", "enterprise", "off", False), ("iometer-four-corners", "client", "on", False),
        ("tkperf-iops", "enterprise", "on", False), ("stec-block-sizes", "client", "on", False),
    ]  # fmt: skip
    assert [row[1:3] for row in chosen("class: client\n")] == [("client", "on")] * 3 + [("client", "on")]
    assert [row[2:] for row in chosen("write_cache: 'off'\n")] == [("off", False), *[("off", True)] * 3]
    assert chosen("write_cache: unchanged\n")[0][2:] == (None, True)


def test_the_schema_knows_the_methods_of_purging() -> None:
    from drivelab.drives.purge import AUTO, METHODS
    from drivelab.plan.schema import load_schema

    assert load_schema("study")["properties"]["purge"]["enum"] == [AUTO, "none", *METHODS]


def study(measurement: str) -> Campaign:
    Path("config/mine.yaml").write_text(
        "name: mine\nclock: virtual\ndrives: [op7]\n"
        "traces: {a: {shipped: sqlite-inserts}, b: {shipped: boot-read}, c: {shipped: rocksdb}}\n"
        f"measurements: [{measurement}]\n"
    )
    return Campaign.load("config/mine.yaml")


def test_a_plan_keeps_the_order_of_its_traces(project: Path) -> None:
    plan = study("{protocol: trace-set, traces: [c, a]}").plans[0].plan
    assert [trace["name"] for trace in plan.subject["traces"]] == ["c", "a"]
    assert all(trace["sha256"] for trace in plan.subject["traces"])
    assert plan.context["trace_paths"] == ["traces/rocksdb.parquet", "traces/sqlite-inserts.parquet"]
    other = study("{protocol: trace-set, traces: [a, c]}").plans[0].plan
    assert other.digest != plan.digest, "the order is part of the measurement"


def test_one_trace_equals_a_set_of_one(project: Path) -> None:
    single, listed = (study(f"{{protocol: trace-set, {key}}}").plans[0].plan for key in ("trace: a", "traces: [a]"))
    assert single.digest == listed.digest


def test_a_plan_without_traces_has_no_such_key(project: Path) -> None:
    plan = study("{protocol: pts-iops, scale: demo}").plans[0].plan
    assert "traces" not in plan.subject
    assert "trace_paths" not in plan.context


def test_the_workflow_knows_which_measurements_need_traces(project: Path) -> None:
    campaign = study(
        "{protocol: pts-iops, scale: demo}, {protocol: rwsw-streams, trace: a}, {protocol: trace-set, traces: [c, a]}"
    )
    layout = Layout(campaign)
    pattern = re.compile(layout.traced_measurements())
    names = [planned.plan.measurement for planned in campaign.plans]
    assert [name for name in names if pattern.fullmatch(name)] == ["rwsw-streams", "trace-set"]
    assert Layout(study("{protocol: pts-iops, scale: demo}")).traced_measurements() == "(?!)"
    sweep, set_ = (SimpleNamespace(**dict(zip(("drive", "measurement", "key"), planned.plan.recording.split("/"),
                                              strict=True))) for planned in campaign.plans[1:])  # fmt: skip
    assert layout.traces_of(sweep) == layout.traces_of(set_) == [], "shipped traces may move"


def test_plans_without_a_replay_do_not_import_pyarrow(project: Path) -> None:
    """Every job of a study makes its plan, and importing pyarrow would take longer than all the rest."""
    study("{protocol: pts-iops, scale: demo}, {protocol: rwsw-streams, trace: a}")
    statements = "from drivelab.campaign.planning import Campaign", "Campaign.load('config/mine.yaml')"
    assert "pyarrow" not in modules_after(*statements)


def test_block_sizes_measured_separately_share_a_figure(project: Path) -> None:
    campaign = study("{protocol: pts-throughput, scale: demo, name: tp}, {protocol: pts-iops, scale: demo}")
    layout = Layout(campaign)
    of_sizes = [planned.plan.recording for planned in campaign.plans if planned.plan.measurement.startswith("tp.")]
    assert len(of_sizes) == 2
    assert layout.comparisons == {"tp": of_sizes}
    assert figures_over_drives([planned.plan for planned in campaign.plans[:2]], "tp", "") == ["sizes_of_drives"]


def test_without_block_sizes_there_is_no_size_figure(project: Path) -> None:
    layout = Layout(study("{protocol: pts-iops, scale: demo}"))
    assert layout.comparisons == {}
