"""Fleets: studies with many drives, their planning cost, and which of their parts run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from drivelab.campaign.introduction import headline
from drivelab.campaign.planning import STAGES, Campaign
from drivelab.core.errors import UserError
from drivelab.drives.identified import Identity
from drivelab.run.consent import Drive, check, require
from drivelab.workflow import figure_layout
from drivelab.workflow.cluster import Cluster
from drivelab.workflow.failures import reasons
from drivelab.workflow.fleet import Fleet, carry_out, evidence_digest, outcomes_of, require_complete, stamp_of
from drivelab.workflow.layout import Layout
from drivelab.workflow.scheduling import Scheduling

ROOT = Path(__file__).resolve().parents[3]
HEAD = "drive\tdevice\tserial\tdestructive\tnote\n"
STUDY = """\
name: many
results: results
drives_sheet: many.tsv
{more}
drives: [{drives}]
measurements: [{{protocol: pts-iops}}, {{protocol: pts-throughput}}, {{protocol: qos-nines}}]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "config").symlink_to(ROOT / "config")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def campaign(project: Path, drives: int, more: str = "") -> Campaign:
    names = [f"d{number}" for number in range(1, drives + 1)]
    rows = [f"{name}\t/dev/disk/by-id/{name}\tS-{name}\tyes\t\n" for name in names]
    (project / "many.tsv").write_text(HEAD + "".join(rows))
    (project / "study.yaml").write_text(STUDY.format(drives=", ".join(names), more=more))
    return Campaign.load("study.yaml")


def looks(project: Path, drives: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Count how often the workflow determines the figures of a plan."""
    layout = Layout(campaign(project, drives))
    count = 0
    original = figure_layout.figure_kinds

    def counted(subject: Any) -> set[str]:
        nonlocal count
        count += 1
        return original(subject)

    monkeypatch.setattr(figure_layout, "figure_kinds", counted)
    layout.targets()
    for kinds in layout.figure_sets():
        layout.with_figures(kinds)
    for kinds in set(layout.over_drives.values()):
        tables = layout.tables_over_drives(kinds)
        for measurement in layout.over_drives:
            for paths in tables.values():
                paths(SimpleNamespace(measurement=measurement))
    for paths in layout.tables_over_sizes().values():
        for measurement in layout.by_size:
            paths(SimpleNamespace(measurement=measurement))
    return count


def test_the_figures_of_each_plan_are_determined_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert looks(project, 20, monkeypatch) == 20 * 4  # pts-throughput has two plans per drive


@pytest.mark.parametrize(("drives", "more", "expected"), [
    pytest.param(3, "", False, id="a small study"),
    pytest.param(3, "fleet: true", True, id="a small study with the key"),
    pytest.param(84, "runs: 3", True, id="more than a thousand recordings"),
    pytest.param(84, "runs: 3\nfleet: false", False, id="a large study with the key set to no"),
    pytest.param(1, "runs: 99", False, id="a single drive"),
])  # fmt: skip
def test_large_studies_are_fleets(project: Path, drives: int, more: str, expected: bool) -> None:
    loaded = campaign(project, drives, more)
    assert loaded.fleet is expected
    assert {planned.plan.context["results"] for planned in loaded.plans if planned.plan.drive == "d1"} == {
        "results/drives/d1" if expected else "results"
    }


def test_a_part_is_the_study_of_one_drive_with_the_same_recordings(project: Path) -> None:
    whole = campaign(project, 3, "fleet: true")
    part = Campaign.load("study.yaml", drive="d2")
    of_drive = [planned.plan for planned in whole.plans if planned.plan.drive == "d2"]
    assert not part.fleet
    assert [planned.plan.recording_path for planned in part.plans] == [plan.recording_path for plan in of_drive]


def test_a_started_study_keeps_its_mode(project: Path) -> None:
    (project / "results/recordings").mkdir(parents=True)
    assert not campaign(project, 84, "runs: 3").fleet
    with pytest.raises(UserError, match="started in one piece, which would all be measured again"):
        campaign(project, 3, "fleet: true")
    (project / "results/recordings").rename(project / "results/drives")
    assert campaign(project, 3).fleet
    with pytest.raises(UserError, match="started drive by drive"):
        campaign(project, 3, "fleet: false")


def test_drives_measured_at_the_same_time_cannot_be_a_fleet(project: Path) -> None:
    campaign(project, 2)
    text = (project / "study.yaml").read_text().replace("qos-nines", "sqlio-head-to-head")
    (project / "study.yaml").write_text(f"fleet: true\n{text}")
    with pytest.raises(UserError, match="measures several drives at the same time"):
        Campaign.load("study.yaml")


def finished(fleet: Fleet, drive: str, **more: Any) -> None:
    """Write the files of a finished part."""
    outcome = {"drive": drive, "subjects": [drive], "state": "measured", "reasons": [], "stamp": fleet.stamps[drive]}
    part = fleet.results / "drives" / drive
    names = ["report/index.html", "report/pts-pages.pdf"]
    names += [f"tables/{name}.parquet" for name in
              ("summary", "exclusions", "conditions", "drives", "hosts", "traces")]  # fmt: skip
    paths = [part / name for name in names] + [
        planned.plan.recording_path / "recording.json" for planned in fleet.plans[drive]
    ]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    outcome["evidence"] = evidence_digest(fleet.plans[drive])
    (part / "outcome.1.json").write_text(json.dumps({**outcome, **more}))


def test_the_files_alone_show_which_drives_have_work_left(project: Path) -> None:
    fleet = Fleet(Layout(campaign(project, 3, "fleet: true")))
    assert fleet.stale() == ["d1", "d2", "d3"]
    finished(fleet, "d1")
    finished(fleet, "d2", state="failed")
    finished(fleet, "d3")
    again = Fleet(Layout(campaign(project, 3, "fleet: true")))
    assert again.stale() == ["d2"]
    outcome = "results/drives/{}/outcome.{}.json".format
    assert again.outcomes() == [outcome("d1", 1), outcome("d2", 2), outcome("d3", 1)]
    assert Fleet(again.layout, judges=False).outcomes() == [outcome(drive, 1) for drive in ("d1", "d2", "d3")]
    (again.plans["d3"][0].plan.recording_path / "recording.json").unlink()
    assert Fleet(Layout(campaign(project, 3, "fleet: true"))).stale() == ["d2", "d3"]
    threshold = "fleet: true\nanalysis: {relative_standard_error: 4%}"
    assert Fleet(Layout(campaign(project, 3, threshold))).stale() == ["d1", "d2", "d3"]


CHANGES = [
    pytest.param("", [], id="nothing"),
    pytest.param("runs: 3", ["d1", "d2", "d3"], id="more runs"),
    pytest.param("include: [{drives: [d2], measurements: [pts-iops], runs: 3}]", ["d2"], id="more runs of one drive"),
    pytest.param("exclude: [{drives: [d3], measurements: [qos-nines]}]", ["d3"], id="fewer measurements of one drive"),
    pytest.param("class: client", ["d1", "d2", "d3"], id="protocols for another class"),
    pytest.param("analysis: {margin: 7%}", ["d1", "d2", "d3"], id="a threshold"),
    pytest.param("taint: {steal: 3%}", ["d1", "d2", "d3"], id="a limit of taint"),
    pytest.param("basis: d2", [], id="the basis, which only the join uses"),
    pytest.param("order: {random: 7}", [], id="order"),
    pytest.param("concurrency: 2", [], id="concurrency"),
    pytest.param("budget: {time: 9999d}", [], id="a budget"),
]


@pytest.mark.parametrize(("more", "expected"), CHANGES)
def test_a_change_of_the_study_affects_these_drives(project: Path, more: str, expected: list[str]) -> None:
    fleet = Fleet(Layout(campaign(project, 3, "fleet: true")))
    for drive in fleet.plans:
        finished(fleet, drive)
    assert Fleet(Layout(campaign(project, 3, f"fleet: true\n{more}"))).stale() == expected


def test_a_replaced_recording_affects_its_drive_whatever_its_mtime(project: Path) -> None:
    fleet = Fleet(Layout(campaign(project, 3, "fleet: true")))
    manifests = {drive: plans[1].plan.recording_path / "recording.json" for drive, plans in fleet.plans.items()}
    for drive in fleet.plans:
        finished(fleet, drive)
    os.utime(manifests["d1"])
    status = manifests["d2"].stat()
    manifests["d2"].write_text("{}")
    os.utime(manifests["d2"], ns=(status.st_atime_ns, status.st_mtime_ns))
    assert Fleet(fleet.layout).stale() == ["d2"]


def test_an_outcome_without_evidence_repeats_the_part(project: Path) -> None:
    fleet = Fleet(Layout(campaign(project, 2, "fleet: true")))
    finished(fleet, "d1")
    finished(fleet, "d2", evidence=None)
    assert Fleet(fleet.layout).stale() == ["d2"]


@pytest.mark.parametrize("more", [
    pytest.param("", id="default settings"),
    pytest.param("basis: d2\nanalysis: {margin: 7%}\nclock: virtual\norder: {random: 3}", id="with many settings"),
    pytest.param("exclude: [{drives: [d1], measurements: [pts-iops]}]", id="drives with different protocols"),
    pytest.param("basis: d2@a\nplatforms: {a: {host: any}, b: {host: any, scenario: real-world}}", id="platforms"),
    pytest.param("traces: {sqlite: {shipped: sqlite-inserts}}", id="a trace"),
])  # fmt: skip
def test_a_part_and_its_fleet_compute_the_same_stamp(project: Path, more: str) -> None:
    campaign(project, 2)
    (project / "traces").symlink_to(ROOT / "traces")
    with (project / "many.tsv").open("a") as sheet:
        sheet.write("d3\tvirtual:op7-512e\tVIRTUAL-OP7-512E\tyes\t\n")
    study = STUDY.format(drives="d1, d2, d3", more=f"fleet: true\n{more}")
    (project / "study.yaml").write_text(
        study.replace(", {protocol: qos-nines}", "")
    )  # qos-nines needs a larger drive than d3
    for png in (True, False):
        fleet = Fleet(Layout(Campaign.load("study.yaml"), png=png))
        assert len(fleet.plans) == 3
        parts = {drive: Layout(Campaign.load("study.yaml", drive=drive), png=png) for drive in fleet.plans}
        assert {drive: stamp_of(part) for drive, part in parts.items()} == fleet.stamps


def test_stamps_do_not_depend_on_the_hosts_abilities(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a cluster, the host that starts a fleet is not one of those that run its parts."""
    (project / "traces").symlink_to(ROOT / "traces")
    more = "fleet: true\ntraces: {sqlite: {shipped: sqlite-inserts}}"
    stamps = []
    for reason in ("no tracer here", None):
        monkeypatch.setattr("drivelab.trace.capturing.capture.possible", lambda reason=reason: reason)
        stamps.append(Fleet(Layout(campaign(project, 2, more))).stamps)
    assert stamps[0] == stamps[1]


class Inner:
    """Replaces the Snakemake of a part: may edit the study during the run, and ends with a status."""

    def __init__(self, edit: Callable[[], Any] = lambda: None, status: int = 0) -> None:
        self.edit, self.status, self.started = edit, status, 0

    def run(self, *_: Any, **__: Any) -> SimpleNamespace:
        self.started += 1
        self.edit()
        return SimpleNamespace(returncode=self.status)


def change(old: str, new: str) -> None:
    """Edit the study."""
    study = Path("study.yaml")
    text = study.read_text()
    assert old in text
    study.write_text(text.replace(old, new))


def carried_out(fleet: Fleet, inner: Inner, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run the part d1 with the fleet's stamp, and return its outcome."""
    monkeypatch.setattr("drivelab.workflow.fleet.subprocess.run", inner.run)
    output = Path(fleet.outcomes()[0])
    assert carry_out(Path("study.yaml"), "d1", fleet.stamps["d1"], 1, output, ["png=yes"]) == 0
    outcome: dict[str, Any] = json.loads(output.read_text())
    return outcome


THRESHOLD = ("fleet: true", "fleet: true\nanalysis: {relative_standard_error: 4%}")
NEEDLESS = ("fleet: true", "fleet: true\nbasis: d2\nbudget: {time: 9999d}\norder: {random: 7}\nconcurrency: 2")


def test_a_study_changed_before_a_part_starts_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet, inner = Fleet(Layout(campaign(project, 2, "fleet: true"))), Inner()
    assert fleet.stamps
    change(*THRESHOLD)
    with pytest.raises(UserError, match=r"drive 'd1': the study changed during the run .*; run again"):
        carried_out(fleet, inner, monkeypatch)
    assert not inner.started
    assert not list(Path("results").rglob("outcome.*"))


def test_a_study_changed_while_a_part_runs_leaves_no_outcome(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet, inner = Fleet(Layout(campaign(project, 2, "fleet: true"))), Inner(lambda: change(*THRESHOLD))
    with pytest.raises(UserError, match="the study changed during the run"):
        carried_out(fleet, inner, monkeypatch)
    assert inner.started
    assert not list(Path("results").rglob("outcome.*"))


def test_a_change_that_affects_no_part_is_accepted(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = Fleet(Layout(campaign(project, 2, "fleet: true")))
    finished(fleet, "d1", state="failed")
    outcome = carried_out(fleet, Inner(lambda: change(*NEEDLESS)), monkeypatch)
    assert outcome["state"] == "measured"
    assert Fleet(Layout(Campaign.load("study.yaml"))).stale() == ["d2"]


def test_a_failed_part_reports_its_reason_although_the_study_changed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Fleet(Layout(campaign(project, 2, "fleet: true")))
    outcome = carried_out(fleet, Inner(lambda: change(*THRESHOLD), status=1), monkeypatch)
    assert (outcome["state"], outcome["reasons"]) == ("failed", ["Snakemake ended without a message"])


def test_a_new_drive_affects_no_other(project: Path) -> None:
    fleet = Fleet(Layout(campaign(project, 2, "fleet: true")))
    for drive in ("d1", "d2"):
        finished(fleet, drive)
    assert Fleet(Layout(campaign(project, 3, "fleet: true"))).stale() == ["d3"]


@pytest.mark.parametrize(("lost", "expected"), [
    ("report/index.html", ["d2"]),
    ("tables/summary.parquet", ["d2"]),
    ("tables/d2/pts-iops/cells.parquet", []),
    ("figures/d2/convergence.svg", []),
])  # fmt: skip
def test_only_lost_final_files_repeat_a_part(project: Path, lost: str, expected: list[str]) -> None:
    fleet = Fleet(Layout(campaign(project, 3, "fleet: true")))
    for drive in fleet.plans:
        finished(fleet, drive)
    (fleet.results / "drives/d2" / lost).unlink(missing_ok=True)
    assert Fleet(fleet.layout).stale() == expected


def test_a_protocol_change_affects_only_drives_that_use_it(project: Path) -> None:
    more = "fleet: true\nexclude: [{drives: [d1], measurements: [pts-iops]}]"
    fleet = Fleet(Layout(campaign(project, 3, more)))
    for drive in fleet.plans:
        finished(fleet, drive)
    study = project / "study.yaml"
    study.write_text(study.read_text().replace("protocol: pts-iops", "protocol: pts-iops, scale: demo"))
    assert Fleet(Layout(Campaign.load("study.yaml"))).stale() == ["d2", "d3"]


@pytest.mark.parametrize(("more", "first"), [("", ["d1", "d2", "d3", "d4"]), ("order: {random: 6}", ["d3", "d1"])])
def test_a_host_measures_its_drives_in_the_order_of_the_study(project: Path, more: str, first: list[str]) -> None:
    fleet = Fleet(Layout(campaign(project, 4, f"fleet: true\nruns: 3\n{more}")))
    drives = sorted(fleet.plans, key=lambda drive: fleet.priority(SimpleNamespace(drive=drive)), reverse=True)
    assert [drive for drive in drives if drive in first] == first
    whole = sorted((planned.plan for planned in fleet.campaign.plans), key=fleet.campaign.order)
    assert list(dict.fromkeys(plan.drive for plan in whole)) == drives, "each drive is finished before the next"
    part = Campaign.load("study.yaml", drive="d3")
    alone = sorted((planned.plan for planned in part.plans), key=part.order)
    assert [plan.recording for plan in alone] == [plan.recording for plan in whole if plan.drive == "d3"]


def test_the_headline_says_that_a_fleet_has_no_blocks(project: Path) -> None:
    words = "A host measures its drives in random order, each with all of its runs. These are not blocks"
    assert words in headline(campaign(project, 3, "fleet: true\norder: {random: 7}"))
    assert words not in headline(campaign(project, 3, "fleet: true"))
    assert "random order" not in headline(campaign(project, 3, "order: {random: 7}"))


SHEET_OF_TWO = HEAD.replace("note", "note\thost") + "".join(
    f"d{number}\t/dev/disk/by-id/d{number}\tS-d{number}\tyes\t\t{host}\n"
    for number, host in ((1, "left"), (2, "right"))
)


def of_two_hosts(project: Path, more: str = "") -> str:
    """Write the study with a drive on each of two hosts; return its path."""
    campaign(project, 2)
    (project / "many.tsv").write_text(SHEET_OF_TWO)
    (project / "study.yaml").write_text(STUDY.format(drives="d1, d2", more=f"fleet: true\n{more}"))
    return "study.yaml"


def test_a_drive_moved_to_another_host_is_not_measured_here(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURMD_NODENAME", "left")
    study = of_two_hosts(project)
    fleet = Fleet(Layout(Campaign.load(study)))
    assert list(fleet.plans) == ["d1"]
    assert fleet.report_facts()["elsewhere"] == ["d2"]
    finished(fleet, "d1")
    there = Fleet(Layout(Campaign.load(study, everywhere=True)))
    finished(there, "d2", state="failed")
    for planned in there.plans["d2"][1:]:
        (planned.plan.recording_path / "recording.json").unlink()
    copied = Fleet(Layout(Campaign.load(study)))
    assert {drive: len(plans) for drive, plans in copied.plans.items()} == {"d1": 4, "d2": 1}
    assert copied.stale() == ["d2"], "the copied recordings are analysed here"
    finished(copied, "d2")
    (there.plans["d2"][0].plan.recording_path / "recording.json").unlink()
    assert Fleet(Layout(Campaign.load(study))).stale() == []


def uses(fleet: Fleet, cluster: Cluster, drive: str, attempt: int = 1) -> dict[str, Any]:
    """Return the cluster resources of a drive's job."""
    known = {"wildcards": SimpleNamespace(drive=drive), "attempt": attempt}
    resources = fleet.resources(Scheduling(fleet.campaign, cluster))
    return {
        name: use(**{key: known[key] for key in use.__code__.co_varnames[: use.__code__.co_argcount] if key in known})
        if callable(use) else use
        for name, use in resources.items()
    }  # fmt: skip


def test_on_a_cluster_a_fleet_drive_is_one_job_with_time_for_all_chains(project: Path) -> None:
    cluster = Cluster(gres="nvme:{drive}:1", options="--nodelist={host} --deadline=now+{latest_min}minutes")
    fleet = Fleet(Layout(Campaign.load(of_two_hosts(project), everywhere=True)))
    scheduling = Scheduling(fleet.campaign, cluster)
    of_chains = 0
    for planned in fleet.plans["d2"]:
        names = ("drive", "measurement", "key")
        wildcards = SimpleNamespace(**dict(zip(names, planned.plan.recording.split("/"), strict=True)))
        of_chains += sum(scheduling.chain(stage)["runtime"](wildcards, 1) for stage in STAGES)
    resources = uses(fleet, cluster, "d2")
    assert (resources["host_left"], resources["host_right"], resources["gres"]) == (0, 1, "nvme:d2:1")
    assert resources["runtime"] == of_chains + 60
    assert resources["slurm_extra"] == f"--nodelist=right --deadline=now+{of_chains + 60 + 1440}minutes"
    assert uses(fleet, cluster, "d2", attempt=2)["runtime"] == 2 * resources["runtime"]
    assert scheduling.part_cores(64) == 4, "more cores would exceed the memory of a job"
    finished(fleet, "d2")
    assert uses(fleet, cluster, "d2")["runtime"] == 60, "no time for recorded measurements"


def test_a_fleet_drive_on_two_hosts_is_refused_on_a_cluster(project: Path) -> None:
    platforms = "platforms: {old: {host: left}, new: {host: right}}"
    study = Path(of_two_hosts(project, platforms))
    (project / "many.tsv").write_text(SHEET_OF_TWO.replace("left\n", "\n").replace("right\n", "\n"))
    with pytest.raises(UserError, match=r"drive 'd1' is planned on the hosts left, right.*use 'fleet: false'"):
        Scheduling(Campaign.load(study, everywhere=True), Cluster())
    study.write_text(study.read_text().replace("fleet: true", "fleet: false"))
    Scheduling(Campaign.load(study, everywhere=True), Cluster())


def test_failed_drives_are_named_at_the_end(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.json" for number in range(6)]
    for number, path in enumerate(paths):
        state = "failed" if number else "measured"
        path.write_text(json.dumps({"drive": f"d{number}", "state": state, "reasons": ["it hangs"]}))
    with pytest.raises(UserError, match=r"5 of 6 drives were not measured.* Drive 'd1': it hangs\..* 2 more, see R"):
        require_complete(outcomes_of(paths), "R")
    require_complete(outcomes_of(paths[:1]), "R")
    paths[1].write_text("{")
    with pytest.raises(UserError, match=r"1\.json: cannot be read"):
        outcomes_of(paths)


def test_reasons_are_the_messages_of_the_jobs(tmp_path: Path) -> None:
    log = tmp_path / "measure.log"
    log.write_text("noise\ndrivelab: drive 'd1' is gone; attach it\n")
    job = "Error in rule {}:\n    jobid: 2\n    log: {} (check log file(s) for error details)\n".format
    assert reasons(job("measure", log)) == ["drive 'd1' is gone; attach it"]
    assert reasons(job("purge", "none"))[0].startswith("rule purge ended without a message")
    assert reasons("nothing works\n\n") == ["nothing works"]


def test_consent_for_a_fleet_holds_for_its_parts(tmp_path: Path) -> None:
    study = SimpleNamespace(name="fleet", path=tmp_path / "study.yaml", results=tmp_path, consent=())
    one, two = Identity("S1", 512), Identity("S2", 512)
    require(study, [Drive("d1", "S1", one)], yes=True)  # type: ignore[arg-type]
    check(tmp_path / "drives/d1", "d1", one)
    with pytest.raises(UserError, match="there is no consent"):
        check(tmp_path / "drives/d2", "d2", two)
    with pytest.raises(UserError, match="there is no consent"):
        check(tmp_path / "others/d1", "d1", one)
