"""The order of measurements, and Snakemake's own load on the measuring host."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from held import RUN, let_end
from mini_project import Project
from waits import wait_until

from drivelab.campaign.planning import Campaign
from drivelab.recording.writer import Recording, read_journal
from drivelab.virtual.fuse import process_state

RUN_AND_PRINT_TIMERS = """\
import sys
from snakemake.cli import main
from snakemake.scheduling.job_scheduler import JobScheduler

JobScheduler._schedule_reevalutation = lambda scheduler, delay: print("a timer was started")
main(sys.argv[1:])
"""


_ORDERED = """\
name: mini
results: results
clock: virtual
basis: op7
drives: [op7, op28]
order: {random: 5}
runs: 3
measurements:
  - {protocol: pts-write-saturation, scale: demo, set: {soak: {slice: 1s, until: {time: 2s}}}}
  - {protocol: pts-idle-recovery, scale: demo, set: {soak: {until: {time: 2s}},
     repeat: {over: {time: [1s]}, loop: {runtime: 100ms, until: {rounds: 1}}, soak: {until: {time: 1s}}}}}
"""


@pytest.mark.long
@pytest.mark.parametrize("order", ["fixed", "{random: 5}"])
def test_measurements_are_made_in_the_order_of_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """The start times show the order: no chain may overtake another, whichever is ready first."""
    project = Project(tmp_path / "project")
    monkeypatch.chdir(project.folder)
    (project.folder / "config/mini.yaml").write_text(_ORDERED.replace("{random: 5}", order))
    done = project.snakemake("--cores", "2", "--until", "purge")
    assert done.returncode == 0, done.stdout + done.stderr
    campaign = Campaign.load(project.study)
    planned = sorted((planned.plan for planned in campaign.plans), key=campaign.order)
    begun = {plan.recording: Recording(plan).journal()[0]["at"] for plan in planned}
    assert sorted(begun, key=lambda recording: begun[recording]) == [plan.recording for plan in planned]
    assert len(begun) == 12


_ONE_DRIVE = _ORDERED.replace("[op7, op28]", "[op7]").replace("runs: 3\n", "").replace("order: {random: 5}\n", "")


@pytest.mark.long
def test_an_interrupted_measurement_comes_first_and_a_dry_run_changes_no_plan(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    project.make_held()
    (project.folder / "hold/op7").touch()
    study = project.folder / project.study
    head, marker, measurements = _ONE_DRIVE.partition("measurements:\n")
    saturation, recovery = measurements.split("  - ")[1:]
    study.write_text(f"{head}{marker}  - {recovery}  - {saturation}")
    with subprocess.Popen(
        [*RUN, "run", project.study], cwd=project.folder, env=project.environment, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as run:  # fmt: skip
        try:
            (held,) = wait_until(lambda: [pid for pid in project.at_work() if process_state(pid)[0] == "T"])
            plans = {path: path.read_bytes() for path in project.folder.glob("results/plans/**/*.json")}
            study.write_text(f"{head}taint: {{load: 31%}}\n{marker}  - {saturation}  - {recovery}")
            project.jobs()
            assert {path: path.read_bytes() for path in project.folder.glob("results/plans/**/*.json")} == plans
            assert len(plans) == 2
        finally:
            run.kill()
    let_end(held)
    wait_until(lambda: not project.at_work())

    (begun,) = project.folder.glob("results/recordings/op7/pts-idle-recovery/*.part")
    done = project.drivelab("run", project.study)
    assert done.returncode == 0, done.stdout + done.stderr
    finished = begun.with_suffix("")
    assert [line["event"] for line in read_journal(finished)].count("resumed") == 1
    assert len(project.recordings()) == 2
    assert not list(begun.parent.glob("*.abandoned-*"))


def test_no_timer_wakes_snakemake_while_jobs_wait_for_a_drive(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    done = subprocess.run(
        [sys.executable, "-c", RUN_AND_PRINT_TIMERS, "--cores", "1", "--config", "study=config/mini.yaml",
         "--until", "plan", "--notemp"],
        cwd=project.folder, env=project.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((project.folder / "results/plans").rglob("*.json"))) == 6
    assert "a timer was started" not in done.stdout
