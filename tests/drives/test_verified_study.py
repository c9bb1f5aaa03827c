"""A study whose replays verify their data, on a virtual drive that keeps its data or loses it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from made_traces import Row, write
from mini_project import Project

from drivelab.campaign.planning import Campaign
from drivelab.collect.collect import collect
from drivelab.plan.plan import Plan
from drivelab.plan.yaml_file import load_yaml
from drivelab.recording.writer import read_journal
from drivelab.replay import native
from drivelab.replay.outcome import OUTCOME_FILE, outcome_about
from drivelab.replay.verify.data_requests import DATA
from drivelab.replay.verify.verification import wrong_blocks
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure
from drivelab.virtual import manage
from drivelab.virtual.model import VIRTUAL_DRIVES, model_among

pytestmark = [pytest.mark.device, pytest.mark.single]
STUDY = """\
name: one
results: results
clock: wall
drives: [op7]
traces: {pairs: {file: pairs.parquet}}
measurements:
  - protocol: trace-replay
    scale: demo
    trace: pairs
    set: {fill: {capacity_multiple: 0.1}, replay: {verify: true, cold_runs: 1, until: {passes: 2}}}
"""


def configure(folder: Path) -> None:
    rows = [Row(n * 500_000, operation=("write", "read")[n % 2], offset_bytes=4096 * (n // 2 % 40)) for n in range(200)]
    write(folder / "pairs.parquet", rows)
    (folder / "config/one.yaml").write_text(STUDY)


@pytest.fixture
def plan(project: Path, run_directory: Path) -> Plan:
    if (reason := native.possible()) is not None:
        pytest.skip(reason)
    configure(Path())
    return Campaign.load("config/one.yaml").plans[0].plan


def condition(plan: Plan) -> Path:
    purge(plan, Path("purged.json"))
    precondition(plan, Path("purged.json"), Path("conditioned.json"))
    return Path("conditioned.json")


def replays(plan: Plan) -> list[dict[str, Any]]:
    return [line for line in read_journal(plan.recording_path) if line["event"] == "replay"]


def test_each_run_is_verified_with_data_of_its_own(plan: Plan) -> None:
    measure(plan, condition(plan))
    lines = replays(plan)
    assert len(lines) == 3
    for line in lines:
        checked = line["data_check"]
        assert (checked["lost"], checked["reads"]["lost"], checked["reads"]["unseen_blocks"]) == (0, 0, 0)
        assert checked["required_blocks"] == 40
        assert checked["reads"]["checked_blocks"] == 100
    outcomes = [plan.recording_path / line["directory"] / OUTCOME_FILE for line in lines]
    assert len({outcome_about(outcome)[DATA]["seed"] for outcome in outcomes}) == 3
    assert not list(plan.recording_path.glob("**/origins.bin"))
    rows = collect(plan.recording_path, reduced=True)["replays"]
    assert (rows["wrong_blocks"] == 0).all()
    assert (rows["verified_blocks"] >= 40).all()


def test_the_first_run_after_a_prefill_judges_all_its_reads(project: Path, run_directory: Path) -> None:
    if (reason := native.possible()) is not None:
        pytest.skip(reason)
    configure(Path())
    rows = [Row(n * 500_000, operation=("read", "write")[n % 2], offset_bytes=4096 * (n // 2 % 40)) for n in range(200)]
    write(Path("pairs.parquet"), rows)
    # In order, so that each read knows the last write before it, however long that takes.
    study = STUDY.replace("verify: true", "verify: true, prefill: footprint, conflicts: ordered")
    Path("config/one.yaml").write_text(study)
    plan = Campaign.load("config/one.yaml").plans[0].plan
    measure(plan, condition(plan))
    checks = [line["data_check"] for line in replays(plan)]
    assert [checked["reads"]["checked_blocks"] for checked in checks] == [100, 100, 100]
    assert [checked["reads"]["required_blocks"] for checked in checks] == [100, 60, 60]
    assert [wrong_blocks(checked) for checked in checks] == [0, 0, 0]
    assert not list(plan.recording_path.glob("**/origins.bin"))


def test_lost_writes_are_in_the_journal_and_taint_the_tables(plan: Plan) -> None:
    seal = condition(plan)
    manage.set_fault("op7", manage.Fault("lose", "write", 8 * 4096, 4 * 4096))
    measure(plan, seal)
    assert [line["data_check"]["lost"] for line in replays(plan)] == [4, 4, 4]
    rows = collect(plan.recording_path, reduced=True)["replays"]
    assert rows["taint_reason"].str.startswith("wrong data: ").all()
    assert rows["counted"].tolist() == [False, True, True]
    assert rows["wrong_data"].str.contains("lost: block at ").all()


@pytest.mark.long
def test_a_run_whose_data_is_wrong_is_complete_and_fails(run_directory: Path, tmp_path: Path) -> None:
    if (reason := native.possible()) is not None:
        pytest.skip(reason)
    project = Project(tmp_path / "project")
    configure(project.folder)
    manage.start("op7", model_among(load_yaml(VIRTUAL_DRIVES), "op7", "a test"))
    manage.set_fault("op7", manage.Fault("lose", "write", 8 * 4096, 4 * 4096))
    done = project.drivelab("run", "config/one.yaml")
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"DATA WRONG: op7, trace-replay: \d+ blocks in 3 replays, such as: lost: block at ", done.stdout)
    assert (project.folder / "results/report/index.html").exists()
