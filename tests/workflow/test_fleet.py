"""A fleet with the real commands: a failed drive, a killed run, a growing study."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from fleet_project import FleetProject, fleet_project
from held import RUN, let_end, state_of, wait

from drivelab.recording.writer import read_journal
from drivelab.tables import io
from drivelab.virtual.faults import Fault, set_faults

JOINED = {"fleet_tables": [""], "fleet_deltas": [""], "fleet_report": [""], "fleet_complete": [""]}


@pytest.fixture
def project(tmp_path: Path) -> FleetProject:
    """Two of three drives, one short loop each."""
    fleet = fleet_project(tmp_path / "project", 3)
    study = (fleet.folder / fleet.study).read_text().partition("  - protocol: pts-write-saturation")[0]
    (fleet.folder / fleet.study).write_text(study.replace("drives: [d1, d2, d3]", "drives: [d1, d2]"))
    fleet.make_held()
    return fleet


def a_failed_drive_is_named_once_and_stops_no_other(project: FleetProject) -> None:
    state = project.parts / "d2/virtual/FLEET-d2.state"
    state.parent.mkdir(parents=True)
    set_faults(state, Fault("gone"))
    done = project.drivelab("run", project.study)
    set_faults(state)
    assert done.returncode == 1
    errors = done.stderr.splitlines()
    assert len(errors) == 2, done.stderr
    assert errors[0].startswith("drivelab: ")
    assert "1 of 2 drives were not measured; fix the causes and run again" in errors[0]
    assert errors[0].count("the drive answers") == 1
    assert errors[0].count("Drive 'd2'") == 1
    assert "is not complete; finished measurements are kept" in errors[1]
    assert project.evidence().keys() == {"d1/run1"}
    drives = io.read(project.folder / "results/tables/fleet_drives.parquet", "fleet_drives").set_index("drive")
    assert drives["state"].to_dict() == {"d1": "measured", "d2": "failed"}
    assert "the drive answers" in drives.loc["d2", "reason"]
    report = (project.folder / "results/report/index.html").read_text()
    assert "1 of 2 drives were measured" in report
    assert "d2: " in report


def a_killed_run_resumes_only_its_drive_and_measures_nothing_twice(project: FleetProject) -> None:
    assert project.jobs() == {"drive": ["d2/2"], **JOINED}
    before = project.evidence()
    (project.folder / "hold/d2").touch()
    with subprocess.Popen(
        [*RUN, "run", project.study],
        cwd=project.folder, env=project.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as run:  # fmt: skip
        (held,) = wait(lambda: [pid for pid in project.at_work() if state_of(pid) == "T"])
        run.kill()
    let_end(held)
    wait(lambda: not project.at_work())
    assert project.outcomes() == {"d1": "outcome.1.json", "d2": "outcome.1.json"}
    (journal,) = (project.parts / "d2/recordings").glob("*/*/*.part/journal.jsonl")
    assert sum(line["event"] == "cell" for line in read_journal(journal.parent)) == 1

    done = project.drivelab("run", project.study)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The last run was interrupted. Continuing where it stopped." in done.stdout
    assert "2 of 2 drives were measured" in done.stdout
    assert not done.stderr
    assert before.items() <= project.evidence().items()
    assert project.outcomes() == {"d1": "outcome.1.json", "d2": "outcome.2.json"}
    (journal,) = (project.parts / "d2/recordings").glob("*/*/*/journal.jsonl")
    events = list(read_journal(journal.parent))
    cells = [line["directory"] for line in events if line["event"] == "cell"]
    assert len(cells) == len(set(cells)) > 1
    assert sum(line["event"] == "purge" for line in events) == 1
    assert project.jobs() == {}


def commands_read_the_tables_and_recordings_of_every_drive(project: FleetProject) -> None:
    sql = "SELECT count(DISTINCT drive) AS n FROM summary"
    assert '"n": 2' in project.drivelab("query", sql, "--results", "results", "--json").stdout
    assert "d2 against d1" in project.drivelab("compare", "d1", "d2", "--results", "results").stdout
    verified = project.drivelab("verify", "results")
    assert verified.stdout.startswith("2 of 2 recordings are unaltered")


def a_study_changed_during_its_run_runs_as_planned_or_not_at_all(project: FleetProject) -> None:
    """The study gets another drive, more runs of d2, and a threshold; d3 comes first and is running."""
    before = project.evidence()
    project.edit(project.study, "drives: [d1, d2]", "drives: [d1, d2, d3]")
    project.edit(project.study, "concurrency: 2", "concurrency: 1\norder: {random: 6}")
    more = "include: [{drives: [d2], measurements: [pts-iops], runs: 3}]\nanalysis: {relative_standard_error: 4%}\n"
    with (project.folder / project.study).open("a") as study:
        study.write(more)
    grown = {"drive": ["d1/2", "d2/3", "d3/1"], **JOINED}
    assert project.jobs() == grown
    (project.folder / "hold/d3").touch()
    with subprocess.Popen(
        [*RUN, "run", project.study],
        cwd=project.folder, env=project.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as run:  # fmt: skip
        (held,) = wait(lambda: [pid for pid in project.at_work() if state_of(pid) == "T"])
        project.edit(project.study, "relative_standard_error: 4%", "relative_standard_error: 3%")
        os.kill(held, signal.SIGCONT)
        errors = run.communicate()[1]
    assert run.returncode == 1
    for drive in ("d1", "d2", "d3"):
        assert f"drive '{drive}': the study changed during the run" in errors
    assert project.evidence().keys() == before.keys() | {"d3/run1"}, "d2 must not be measured by an unapproved plan"
    assert project.outcomes() == {"d1": "outcome.1.json", "d2": "outcome.2.json"}
    assert project.jobs() == grown


def a_grown_study_measures_only_new_plans_in_the_order_of_its_seed(project: FleetProject) -> None:
    """The same study: d1 and d3 are only analysed again."""
    before = project.evidence()
    done = project.drivelab("run", project.study)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "A host measures its drives in random order" in done.stdout
    assert project.evidence().keys() == {"d1/run1", "d2/run1", "d2/run2", "d2/run3", "d3/run1"}
    assert before.items() <= project.evidence().items()
    ended = sorted(project.parts.glob("*/outcome.*.json"), key=lambda outcome: outcome.stat().st_mtime_ns)
    assert [outcome.parent.name for outcome in ended] == ["d3", "d1", "d2"]
    for drive in ("d1", "d3"):
        assert "rule measure" not in (project.parts / drive / "logs/snakemake.log").read_text()
    assert project.jobs() == {}


@pytest.mark.long
def test_the_life_of_a_fleet(project: FleetProject) -> None:
    """One test, because each part continues from the previous one, and tests may run on several workers."""
    a_failed_drive_is_named_once_and_stops_no_other(project)
    a_killed_run_resumes_only_its_drive_and_measures_nothing_twice(project)
    commands_read_the_tables_and_recordings_of_every_drive(project)
    a_study_changed_during_its_run_runs_as_planned_or_not_at_all(project)
    a_grown_study_measures_only_new_plans_in_the_order_of_its_seed(project)
