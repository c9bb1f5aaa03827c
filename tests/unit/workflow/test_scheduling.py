"""Resources of jobs on hosts and on a cluster."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from drivelab.campaign.planning import STAGES, Campaign
from drivelab.core.errors import UserError
from drivelab.plan.hosts import host_of, this_host
from drivelab.plan.plan import Plan
from drivelab.run.progress import Progress
from drivelab.workflow.cluster import Cluster
from drivelab.workflow.scheduling import Scheduling

STUDY = """\
name: mine
results: results
clock: virtual
drives_sheet: config/mine.tsv
drives: [op7, op28-512e, op28]
measurements: [{protocol: pts-iops, scale: demo}]
"""
SHEET = """\
drive\tdevice\tserial\tdestructive\tnote\thost
op7\tvirtual:op7\tVIRTUAL-OP7\tyes\t\tleft
op28\tvirtual:op28\tVIRTUAL-OP28\tyes\t\tright
op28-512e\tvirtual:op28-512e\tVIRTUAL-OP28-512E\tyes\t\tleft
"""
REAL = SHEET.replace("virtual:", "/dev/disk/by-id/")
CAPTURE = "traces: {one: {capture: sqlite-inserts, origin: trace-origin, shipped: sqlite-inserts}}\n"
CLUSTER = Cluster(gres="nvme:{drive}:1", options="--nodelist={host} --exclusive --deadline=now+{latest_min}minutes")


def load(project: Path, text: str = STUDY, sheet: str = SHEET) -> Campaign:
    (project / "config/mine.tsv").write_text(sheet)
    (project / "config/mine.yaml").write_text(text)
    return Campaign.load("config/mine.yaml", everywhere=True)


def wildcards(plan: Plan) -> Any:
    drive, measurement, key = plan.recording.split("/")
    return SimpleNamespace(drive=drive, measurement=measurement, key=key)


def uses_of(scheduling: Scheduling, stage: str, plan: Plan, attempt: int = 1) -> dict[str, Any]:
    known = {"wildcards": wildcards(plan), "attempt": attempt}
    return {
        name: use(**{key: known[key] for key in use.__code__.co_varnames[: use.__code__.co_argcount] if key in known})
        if callable(use) else use
        for name, use in scheduling.chain(stage).items()
    }  # fmt: skip


def test_a_job_takes_a_place_on_the_host_of_its_drive(project: Path) -> None:
    campaign = load(project)
    scheduling = Scheduling(campaign)
    assert scheduling.limits() == {"host_left": 1, "host_right": 1}
    uses = {plan.drive: uses_of(scheduling, "measure", plan) for plan in campaign.here}
    assert uses["op7"] == uses["op28-512e"] == {"host_left": 1, "host_right": 0}
    assert uses["op28"] == {"host_left": 0, "host_right": 1}


def test_drives_without_a_host_use_the_limit_of_any(project: Path) -> None:
    text = STUDY.replace("drives_sheet: config/mine.tsv\n", "concurrency: {any: 3}\n")
    scheduling = Scheduling(load(project, text))
    assert scheduling.limits()[f"host_{this_host()}"] == 3
    assert scheduling.cores(6) == 2
    mixed = SHEET.replace("\tleft", f"\t{this_host()}", 1).replace("\tright", "\t").replace("\tleft", "\t")
    both = Scheduling(load(project, STUDY + f"concurrency: {{any: 3, {this_host()}: 2}}\n", mixed))
    assert both.limits()[f"host_{this_host()}"] == 2, "the strictest limit of its drives applies"


def test_on_a_concurrent_host_each_drive_has_one_job_at_a_time(project: Path) -> None:
    campaign = load(project, STUDY + "concurrency: {left: 2, right: 1}\n")
    scheduling = Scheduling(campaign)
    assert scheduling.limits() == {"host_left": 2, "host_right": 1, "drive_op7": 1, "drive_op28_512e": 1}
    assert uses_of(scheduling, "purge", campaign.here[0])["drive_op7"] == 1
    assert uses_of(scheduling, "purge", campaign.here[1])["drive_op7"] == 0
    assert scheduling.cores(8) == 4


def test_a_drive_without_a_host_takes_a_place_on_this_host(project: Path) -> None:
    sheet = SHEET.replace("left", "").replace("right", this_host())
    assert list(Scheduling(load(project, sheet=sheet)).limits().values()) == [1]


def test_chains_run_in_order_without_a_break(project: Path) -> None:
    campaign = load(project)
    scheduling = Scheduling(campaign)
    left = [plan for plan in campaign.here if plan.drive != "op28"]
    rank = {
        (campaign.order(plan), stage): scheduling.priority(stage)(wildcards(plan)) for plan in left for stage in STAGES
    }
    assert sorted(rank, key=lambda rank_key: rank[rank_key], reverse=True) == [
        (order, stage) for order in (0, 1) for stage in reversed(STAGES)
    ]
    assert scheduling.first > max(rank.values())


def test_a_chain_goes_to_its_drives_host_with_time_for_all_stages(project: Path) -> None:
    campaign = load(project)
    scheduling = Scheduling(campaign, CLUSTER)
    plan = next(candidate for candidate in campaign.here if candidate.drive == "op28-512e")
    stages = [uses_of(scheduling, stage, plan) for stage in STAGES]
    assert {stage["gres"] for stage in stages} == {"nvme:op28_512e:1"}
    assert {stage["cpus_per_task"] for stage in stages} == {-1}
    walltime_min = sum(stage["runtime"] for stage in stages)
    assert {stage["slurm_extra"] for stage in stages} == {
        f"--exclusive --deadline=now+{walltime_min + 1440}minutes --nodelist=left"
    }
    assert stages[2]["runtime"] > stages[1]["runtime"], "a measurement may have to purge and precondition again"
    assert uses_of(scheduling, "measure", plan, attempt=2)["runtime"] == 2 * stages[2]["runtime"]


@pytest.mark.parametrize("letter", "cenoptACDJN")
def test_no_host_looks_like_an_option_of_the_executor(project: Path, letter: str) -> None:
    """The executor refuses jobs whose options match `-c[=\\s]` and others: options that it sets itself."""
    campaign = load(project, sheet=SHEET.replace("left", f"rack-{letter}"))
    extra = uses_of(Scheduling(campaign, CLUSTER), "purge", campaign.here[0])["slurm_extra"]
    assert f"--nodelist=rack-{letter}" in extra
    assert not re.search(rf"-{letter}[=\s]", extra)


def test_options_with_a_host_are_omitted_for_a_drive_without_a_host(project: Path) -> None:
    campaign = load(project, sheet=SHEET.replace("left", "").replace("right", ""))
    extra = uses_of(Scheduling(campaign, CLUSTER), "purge", campaign.here[0])["slurm_extra"]
    assert extra.startswith("--exclusive --deadline=")


ALIGNED = "set: {for_each: {workload: [command-8k]}}"


@pytest.mark.parametrize(
    ("study", "sheet", "words"),
    [
        (STUDY.replace("clock: virtual", "clock: auto"), SHEET, "set 'clock: virtual' in the study"),
        (STUDY, REAL.replace("left", ""), "has no 'host'"),
        (STUDY.replace("protocol: pts-iops, scale: demo", f"protocol: sqlio-head-to-head, scale: demo, {ALIGNED}"),
         SHEET, "attach them to one host"),
        (STUDY.replace("virtual", "auto") + CAPTURE, REAL, "name its file"),
        (STUDY.replace("virtual", "auto") + "host_settings: apply\n", REAL, "on a cluster use 'check'"),
    ],
)  # fmt: skip
def test_settings_that_do_not_fit_a_cluster_are_refused_with_a_remedy(
    project: Path, study: str, sheet: str, words: str
) -> None:
    campaign = load(project, study, sheet)
    with pytest.raises(UserError, match=words):
        Scheduling(campaign, CLUSTER)


@pytest.mark.parametrize("body", [{"gress": ""}, {"wait_min": "1d"}])
def test_an_unknown_cluster_setting_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=next(iter(body))):
        Cluster.from_mapping(body)


@pytest.fixture
def sinfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that writes a stand-in for sinfo, which prints these lines."""

    def write(*lines: str) -> None:
        path = tmp_path / "bin/sinfo"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(["#!/bin/sh", *(f"echo '{line}'" for line in lines)]))
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")

    return write


def test_a_host_that_slurm_does_not_know_is_refused(project: Path, sinfo: Callable[..., None]) -> None:
    scheduling = Scheduling(load(project), CLUSTER)
    scheduling.refuse_in_slurm()  # another cluster, without Slurm
    sinfo("left1|all*|infinite", "right|all*|infinite")
    with pytest.raises(UserError, match=r"'op7' is to be measured on host 'left', which Slurm does not know.*'left1'"):
        scheduling.refuse_in_slurm()
    Scheduling(load(project), Cluster(options="--constraint=nvme")).refuse_in_slurm()
    sinfo("left|all*|infinite", "right|all*|infinite")
    scheduling.refuse_in_slurm()
    Scheduling(load(project)).refuse_in_slurm()


@pytest.mark.parametrize(
    ("partition", "short", "long"),
    [("", "all*", "all*"), ("night", "night", "night"), ("a,b", "a", "b"), (None, "day", "night")],
)
def test_a_partition_that_ends_a_chain_before_its_time_is_refused(
    project: Path, sinfo: Callable[..., None], partition: str | None, short: str, long: str
) -> None:
    campaign = load(project)
    scheduling = Scheduling(campaign, CLUSTER)
    needed_s = 60 * max(sum(uses_of(scheduling, stage, plan)["runtime"] for stage in STAGES) for plan in campaign.here)
    enough, too_short = (f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:00" for seconds in (needed_s, needed_s - 60))
    others = "right|another|infinite", "left|other|10-00:00:00"
    sinfo(f"left|{short}|{too_short}", f"right|{short}|30:00", *(others if partition is not None else ()))
    with pytest.raises(UserError, match=r"may take .*, but Slurm would end it after .*set 'slurm_partition'"):
        scheduling.refuse_in_slurm(partition)
    sinfo(*(f"{host}|{short}|10:00" for host in ("left", "right")), f"left|{long}|{enough}", f"right|{long}|1-{enough}")
    scheduling.refuse_in_slurm(partition)


def test_a_finished_study_needs_no_host(project: Path, sinfo: Callable[..., None]) -> None:
    campaign = load(project)
    sinfo("login|all*|1:00")
    for plan in campaign.here:
        plan.recording_path.mkdir(parents=True)
        (plan.recording_path / "recording.json").touch()
    Scheduling(load(project), CLUSTER).refuse_in_slurm()


def test_only_the_slurm_profile_has_a_cluster() -> None:
    profiles = Path(__file__).resolve().parents[3] / "profiles"
    cluster = Cluster.of_profile(profiles / "slurm")
    assert cluster is not None
    assert "{host}" in cluster.options
    assert Cluster.of_profile(profiles / "default") is None


@pytest.mark.parametrize("end", [KeyboardInterrupt, UserError("the drive failed")])
def test_an_interrupted_or_failed_measurement_comes_first(
    project: Path, monkeypatch: pytest.MonkeyPatch, end: BaseException
) -> None:
    campaign = load(project)
    *others, last = sorted(campaign.here, key=campaign.order)
    monkeypatch.setenv("SLURMD_NODENAME", host_of(last))
    with pytest.raises((KeyboardInterrupt, UserError)), Progress(last, "measure"):
        raise end
    scheduling = Scheduling(campaign)
    of_others = [scheduling.priority("measure")(wildcards(plan)) for plan in others]
    assert max(of_others) < scheduling.priority("purge")(wildcards(last))


def test_a_measurement_that_failed_twice_keeps_its_place_in_the_order(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = load(project)
    *others, last = sorted(campaign.here, key=campaign.order)
    monkeypatch.setenv("SLURMD_NODENAME", host_of(last))
    for _ in range(2):
        with pytest.raises(UserError), Progress(last, "measure"):
            raise UserError("the drive failed")
    scheduling = Scheduling(campaign)
    of_others = [scheduling.priority("measure")(wildcards(plan)) for plan in others]
    assert min(of_others) > scheduling.priority("measure")(wildcards(last))
