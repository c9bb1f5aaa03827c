"""Budgets: time and bytes that a study has used and may still use, by host and by drive."""

from __future__ import annotations

import json
import platform
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from stages import lines, run_stages

from drivelab.campaign import budget as spent
from drivelab.campaign.budget import exceeded, measured_s, require_within, written_bytes, written_in
from drivelab.campaign.estimate import Trace
from drivelab.campaign.outlook import outlook
from drivelab.campaign.planning import Campaign
from drivelab.core.errors import UserError
from drivelab.plan.hosts import this_host
from drivelab.plan.plan import Plan
from drivelab.virtual.kept_state import KEPT_DRIVES
from drivelab.virtual.model import DriveModel
from drivelab.virtual_clock.cells import VirtualClockDrive

STUDY = """\
name: mine
results: results
clock: virtual
drives: [op7, op28]
measurements:
  - {protocol: pts-write-saturation, scale: demo, set: {soak: {slice: 1s, until: {time: 2s}}}}
"""


IN_REAL_TIME = STUDY.replace("clock: virtual", "clock: wall")


def load(study: str, *, everywhere: bool = False) -> Campaign:
    Path("config/mine.yaml").write_text(study)
    return Campaign.load("config/mine.yaml", everywhere=everywhere)


def excesses(more: str, study: str = STUDY) -> list[str]:
    campaign = load(study + more, everywhere=True)
    return exceeded(campaign, outlook(campaign))


def measured(study: str = STUDY) -> Campaign:
    """Measure a study and return its campaign."""
    campaign = load(study)
    for planned in campaign.plans:
        run_stages(planned.plan)
    return campaign


def refused_beyond(most_s: float, study: str, more: str = "") -> list[str]:
    """Check that a budget of slightly more time is accepted, and return the refusals of slightly less."""
    assert excesses(f"budget: {{time: {1.01 * most_s}s}}\n{more}", study) == []
    return excesses(f"budget: {{time: {0.99 * most_s}s}}\n{more}", study)


def hosts_of(hosts: dict[str, str]) -> None:
    """Write these hosts, and no others, to the drive sheet."""
    sheet = Path("config/drives.tsv")
    rows = [line.split("\t")[:5] for line in sheet.read_text().splitlines()]
    cells = {"drive": "host", **hosts}
    sheet.write_text("".join("\t".join([*row, cells.get(row[0], "")]) + "\n" for row in rows))


def in_real_time(recording: Path, host: str, took_s: float | None = None) -> None:
    """Make a simulated recording look like one in real time on `host`, which may take `took_s`."""
    plan = recording / "plan.json"
    plan.write_text(plan.read_text().replace('"clock": "virtual"', '"clock": "wall"'))
    host_file = recording / "host.json"
    host_file.write_text(json.dumps({**json.loads(host_file.read_text()), "host": host}))
    if took_s is not None:
        journal = (recording / "journal.jsonl").read_text().splitlines()
        ended = datetime.fromisoformat(json.loads(journal[0])["at"]) + timedelta(seconds=took_s)
        journal[-1] = json.dumps({**json.loads(journal[-1]), "at": ended.isoformat()})
        (recording / "journal.jsonl").write_text("\n".join(journal) + "\n")


def recorded(plan: Plan, host: str | None) -> None:
    """Write a recording of one minute; `host` may be unknown."""
    folder = plan.recording_path
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(plan.to_json())
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    times = (begun, begun + timedelta(seconds=60))
    journal = (json.dumps({"event": "measure", "at": time.isoformat()}) for time in times)
    (folder / "journal.jsonl").write_text("".join(line + "\n" for line in journal))
    if host is not None:
        (folder / "host.json").write_text(json.dumps({"host": host}))


@pytest.fixture
def real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that this host can run virtual drives in real time; nothing runs."""
    monkeypatch.setattr("drivelab.virtual.manage.possible", lambda: None)


def test_a_large_excess_is_printed_in_plain_numbers(project: Path) -> None:
    assert excesses("") == excesses("budget: {written: 1TB}\n") == []
    first, second = excesses("budget: {written: 1kB}\n")
    assert re.search(r"allowed, \d+(,\d00)?,000 times as much$", first)
    assert re.search(r"allowed, \d+(,\d00)?,000 times as much$", second)


@pytest.mark.usefixtures("real_time")
def test_the_busiest_host_counts_with_its_concurrency(project: Path) -> None:
    assert excesses("budget: {time: 1d, written: 1TB}\n", IN_REAL_TIME) == []
    campaign = load(IN_REAL_TIME)
    most_s = sum(row.estimate.most_s for row in outlook(campaign))
    (text,) = excesses(f"budget: {{time: {0.75 * most_s}s}}\n", IN_REAL_TIME)
    assert "the host may take" in text
    assert "1.33 times" in text
    assert excesses(f"budget: {{time: {0.75 * most_s}s}}\nconcurrency: 2\n", IN_REAL_TIME) == []


@pytest.mark.usefixtures("real_time")
def test_concurrency_does_not_shorten_a_single_drive(project: Path) -> None:
    study = IN_REAL_TIME.replace("op7, op28", "op7") + "runs: 3\nconcurrency: {any: 4}\n"
    (row,) = outlook(load(study))
    assert len(refused_beyond(row.estimate.most_s, study)) == 1


@pytest.mark.usefixtures("real_time")
def test_concurrency_does_not_shorten_a_drives_past_time(project: Path) -> None:
    study = IN_REAL_TIME + "concurrency: 2\n"
    took_s = 1e5
    in_real_time(measured().plans[0].plan.recording_path, platform.node(), took_s)
    left_s = outlook(load(study))[0].estimate.most_s
    assert len(excesses(f"budget: {{time: {took_s + 0.99 * left_s}s}}\n", study)) == 1
    assert excesses(f"budget: {{time: {took_s + 1.01 * left_s}s}}\n", study) == []


@pytest.mark.usefixtures("real_time")
def test_a_drive_without_a_host_uses_this_hosts_time(project: Path) -> None:
    hosts_of({"op7": this_host()})
    most_s = sum(row.estimate.most_s for row in outlook(load(IN_REAL_TIME)))
    (text,) = refused_beyond(most_s, IN_REAL_TIME)
    assert f"host '{this_host()}' may take" in text


def test_a_time_budget_of_simulated_drives_is_refused(project: Path) -> None:
    with pytest.raises(
        UserError, match=r"mine.yaml: key 'budget.time' .*all drives are simulated.*sets it.*remove the key"
    ):
        excesses("budget: {time: 1d}\n")


def test_simulated_drives_take_no_time_next_to_real_drives(project: Path) -> None:
    sheet = Path("config/drives.tsv")
    sheet.write_text(sheet.read_text() + "real\t/dev/disk/by-id/nvme-none\tS1\tyes\t\n")
    whole = STUDY.replace("op7, op28", "op7, real").replace("scale: demo, ", "")
    rows = {row.drive: row.estimate.most_s for row in outlook(load(whole))}
    assert rows["op7"] > 1
    assert excesses(f"budget: {{time: {rows['real'] + 0.5}s}}\n", whole) == []
    assert excesses(f"budget: {{time: {rows['real'] - 0.5}s}}\n", whole) != []


@pytest.mark.usefixtures("real_time")
def test_each_host_has_its_own_time(project: Path) -> None:
    hosts_of({"op7": "bench-a", "op28": "bench-b"})
    rows = outlook(load(IN_REAL_TIME, everywhere=True))
    longest_s, other_s = sorted((row.estimate.most_s for row in rows), reverse=True)
    assert excesses(f"budget: {{time: {1.01 * longest_s}s}}\n", IN_REAL_TIME) == []
    texts = excesses(f"budget: {{time: {0.99 * min(longest_s, other_s)}s}}\n", IN_REAL_TIME)
    assert len(texts) == 2
    assert "host 'bench-a'" in texts[0]


def test_every_drive_that_may_exceed_the_budget_is_named(project: Path) -> None:
    texts = excesses("budget: {written: 1MB}\n")
    assert [("op7" in text, "op28" in text) for text in texts] == [(True, False), (False, True)]
    campaign = Campaign.load("config/mine.yaml")
    with pytest.raises(UserError, match=r"config/mine.yaml: key 'budget' may be exceeded.*op7.*op28.*Nothing was wri"):
        require_within(campaign, outlook(campaign))


def test_bytes_written_earlier_count(project: Path) -> None:
    planned = measured().plans[-1]
    model = planned.plan.subject["drive"]["virtual"]
    state = Path("results") / KEPT_DRIVES / f"{model['serial']}.state"
    drive = VirtualClockDrive(DriveModel.from_mapping("op28", model), state)
    written_bytes = drive.counters()["host_write_bytes"]
    again = STUDY + "runs: 3\n"
    left_bytes = outlook(load(again))[1].estimate.most_bytes
    enough, too_little = ((left_bytes + share * written_bytes) for share in (1.02, 0.98))
    assert not any("op28" in planned for planned in excesses(f"budget: {{written: {enough:.0f}B}}\n", again))
    assert any("op28" in text for text in excesses(f"budget: {{written: {too_little:.0f}B}}\n", again))


def test_a_finished_study_is_analysed_whatever_its_budget(project: Path) -> None:
    measured()
    assert excesses("budget: {written: 1B}\n") == []
    assert excesses("budget: {written: 1B}\nruns: 3\n") != []


def test_recordings_without_a_plan_count(project: Path) -> None:
    campaign = measured()
    before = written_bytes(campaign)
    op7, op28 = (Path("results/recordings") / planned.plan.recording for planned in campaign.plans)
    op7.rename(op7.with_name(f"{op7.name}.abandoned-1"))
    op28.rename(op28.with_name(f"{op28.name}.part"))
    Path("config/drives.tsv").write_text(Path("config/drives.tsv").read_text().replace("op7\t", "renamed\t", 1))
    changed = STUDY.replace("op7", "renamed").replace("time: 2s", "time: 3s")
    later = load(changed)
    assert not {planned.plan.digest for planned in later.plans} & {planned.plan.digest for planned in campaign.plans}
    assert written_bytes(later) == before
    assert min(before.values()) > 50e6
    most_bytes = max(row.estimate.most_bytes for row in outlook(later))
    assert excesses(f"budget: {{written: {most_bytes + 1:.0f}B}}\n", changed) != []


def test_recordings_of_a_study_in_a_subfolder_do_not_count(project: Path) -> None:
    campaign = measured(STUDY.replace("results: results", "results: results/one"))
    assert written_bytes(campaign) != {}
    assert written_bytes(load(STUDY)) == {}


@pytest.mark.usefixtures("real_time")
def test_only_recordings_in_real_time_spend_time(project: Path) -> None:
    campaign = measured()
    assert measured_s(campaign) == {}
    expected = {}
    for planned in campaign.plans:
        in_real_time(planned.plan.recording_path, "bench-a")
        times = [datetime.fromisoformat(line["at"]) for line in lines(planned.plan)]
        expected[planned.plan.subject["drive"]["serial"]] = pytest.approx(
            (times[-1] - times[0]).total_seconds(), abs=1e-5
        )
    assert measured_s(load(IN_REAL_TIME)) == {"bench-a": expected}


@pytest.mark.usefixtures("real_time")
def test_the_measuring_host_spends_the_time(project: Path) -> None:
    took_s = 1e5
    plan = measured(STUDY.replace("op7, op28", "op7")).plans[0].plan
    in_real_time(plan.recording_path, "bench-a", took_s)
    study = IN_REAL_TIME.replace("op7, op28", "op7")
    hosts_of({"op7": "bench-b"})
    budget = f"budget: {{time: {0.9 * took_s}s}}\n"
    assert excesses(budget, study) == [], "bench-b never measured anything"
    hosts_of({"op7": "bench-a"})
    assert "host 'bench-a' may take" in excesses(budget, study)[0]


@pytest.mark.parametrize("host", ["bench-a", None])
@pytest.mark.usefixtures("real_time")
def test_the_present_plan_does_not_determine_the_measuring_host(project: Path, host: str | None) -> None:
    """The host is not part of a recording's digest."""
    hosts_of({"op7": "bench-a"})
    study = IN_REAL_TIME.replace("op7, op28", "op7")
    plan = load(study, everywhere=True).plans[0].plan
    recorded(plan, host)
    hosts_of({"op7": "bench-b"})
    today = load(study, everywhere=True)
    assert today.plans[0].plan.recording == plan.recording
    assert measured_s(today) == {"bench-a": {"VIRTUAL-OP7": 60.0}}


@pytest.mark.usefixtures("real_time")
def test_slurms_name_of_a_host_may_differ_from_its_own(project: Path) -> None:
    hosts_of({"op7": "node1"})
    campaign = load(IN_REAL_TIME, everywhere=True)
    for planned in campaign.plans:
        recorded(planned.plan, "node1.cluster.example")
    assert measured_s(campaign) == {"node1": {"VIRTUAL-OP7": 60.0}, "node1.cluster.example": {"VIRTUAL-OP28": 60.0}}


@pytest.mark.usefixtures("real_time")
def test_a_recording_without_a_host_uses_the_sheets_host_or_any(project: Path) -> None:
    for planned in load(IN_REAL_TIME).plans:
        recorded(planned.plan, None)
    hosts_of({"op7": "bench-a"})
    spent_s = measured_s(load(IN_REAL_TIME, everywhere=True))
    assert spent_s == {"bench-a": {"VIRTUAL-OP7": 60.0}, "any": {"VIRTUAL-OP28": 60.0}}


@pytest.mark.usefixtures("real_time")
def test_only_one_small_file_of_a_recording_is_read(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts_of({"op7": "bench-a", "op28": "bench-b"})
    campaign = load(IN_REAL_TIME, everywhere=True)
    for planned in campaign.plans:
        recorded(planned.plan, "bench-b")
    monkeypatch.setattr(spent, "_plan_in", lambda _: pytest.fail("a plan was read"))
    assert measured_s(campaign)["bench-b"].keys() == {"VIRTUAL-OP7", "VIRTUAL-OP28"}


@pytest.mark.parametrize(
    "damage", [b"garbage\n", b"\xff\xfe\n", b"[1]\n", b"{}\n", b'{"at":3,"event":"cell"}\n'], ids=repr
)
@pytest.mark.usefixtures("real_time")
def test_a_damaged_journal_is_named(project: Path, damage: bytes) -> None:
    campaign = measured(STUDY.replace("op7, op28", "op7"))
    journal = campaign.plans[0].plan.recording_path / "journal.jsonl"
    journal.write_bytes(journal.read_bytes() + damage)
    fault = rf"{journal}: line \d+ is not a journal line.*restore.*'drivelab verify {journal.parent}'"
    with pytest.raises(UserError, match=fault):
        excesses("budget: {written: 1TB}\n")
    plan = journal.with_name("plan.json")
    plan.write_text(plan.read_text().replace('"clock": "virtual"', '"clock": "wall"'))
    with pytest.raises(UserError, match=fault):
        excesses("budget: {time: 9d}\n", IN_REAL_TIME)
    plan.write_text("[]")
    with pytest.raises(UserError, match=rf"{plan}: is not a plan.*restore"):
        excesses("budget: {time: 9d}\n", IN_REAL_TIME)


def test_journals_are_read_only_for_a_budget(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured()
    monkeypatch.setattr(spent, "_from_journal", lambda *_, **__: pytest.fail("a journal was read"))
    assert excesses("") == []
    with pytest.raises(pytest.fail.Exception):
        excesses("budget: {written: 1TB}\n")


def test_the_endurance_of_a_virtual_drive_counts(project: Path) -> None:
    sheet = Path("config/drives.tsv")
    rated = {"drive": "endurance_tbw", "op7": "600", "op28": "0.000001"}
    rows = [line.split("\t") for line in sheet.read_text().splitlines()]
    sheet.write_text("".join("\t".join([*row, rated.get(row[0], "")]) + "\n" for row in rows))
    (text,) = excesses("budget: {endurance: 50%}\n")
    assert "drive 'op28' may be written" in text
    assert "50 % of its endurance, 488 KiB allowed" in text


def test_a_share_of_an_unknown_endurance_is_refused(project: Path) -> None:
    Path("config/drives.tsv").write_text(
        "drive\tdevice\tserial\tdestructive\tnote\tendurance_tbw\n"
        "a\t/dev/disk/by-id/a\tA\tyes\t\t600\nb\t/dev/disk/by-id/b\tB\tyes\t\t\n"
    )
    study = STUDY.replace("op7, op28", "a").replace("clock: virtual\n", "").replace("scale: demo, ", "")
    campaign = load(study + "budget: {endurance: 0.0001%}\n")
    (text,) = exceeded(campaign, outlook(campaign))
    assert "drive 'a'" in text
    assert "0.0001 % of its endurance" in text
    assert re.search(
        r"written 986 GiB \(if its capacity is .*; upper bound if its cells write at 14,000 MiB/s all .*\) of 0.0001 %",
        text,
    )
    campaign = load(study.replace("[a]", "[b]") + "budget: {endurance: 5%}\n")
    with pytest.raises(UserError, match=r"'budget.endurance'.*drive 'b'.*endurance_tbw"):
        exceeded(campaign, outlook(campaign))


def test_written_bytes_of_each_kind_of_journal_line() -> None:
    mix = {"read_share": 65}
    span = {"io_started_s": 5.0, "io_ended_s": 15.0}
    cell = {"event": "cell", "workload": mix, "metrics": {"bandwidth_mib_s": 100.0}, **span}
    nothing: dict[str, Trace] = {}
    assert written_in(cell, nothing.get) == pytest.approx(1000 * 2**20 * 0.35)
    assert written_in({**cell, "event": "tainted"}, nothing.get) == written_in(cell, nothing.get)
    assert written_in({"event": "soak", "bytes": 1000, "workload": mix}, nothing.get) == pytest.approx(350)
    assert written_in({"event": "fill", "bytes": 7}, nothing.get) == 7
    assert written_in({"event": "purge", "method": "overwrite", "written_bytes": 9}, nothing.get) == 9
    assert written_in({"event": "purge", "method": "trim"}, nothing.get) == 0
    replay = {"event": "replay", "trace": "t", "metrics": {"bytes": 400}}
    assert written_in(replay, {"t": Trace(1.0, write_bytes=30, read_bytes=10)}.get) == 300
    assert written_in(replay, nothing.get) == 400
    assert written_in(replay, {"t": Trace(1.0, 0, 0)}.get) == written_in({"event": "seal"}, nothing.get) == 0
