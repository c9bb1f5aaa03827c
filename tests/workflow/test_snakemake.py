"""Plain Snakemake: its own checks and plans, the order of measurements, its refusals, and its own report."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from held import RUN, let_end
from mini_project import Project
from waits import wait_until

from drivelab.campaign.planning import Campaign
from drivelab.core.programs import process_state
from drivelab.figures.registry import ALL
from drivelab.recording.writer import Recording, read_journal

ATTACK = "</script><img src=x onerror=alert(1)>"
SOFTWARE = "Specify a conda environment or container for each rule."
"""`./drivelab setup` makes one environment for all rules, from the locked requirements.txt; `drivelab run` starts
Snakemake in it. An environment per rule would repeat it for each rule."""
DEPLOYED = """\
configfile: "config/config.yaml"
module drivelab:
    snakefile: "{snakefile}"
    config: config
use rule * from drivelab
onstart:
    drivelab.onstart()
"""
"""The Snakefile that snakedeploy writes, and the handler of docs/install.md."""
MOST_TEXT = 50_000
"""Characters of the dry run of a study with six recordings."""


def test_lint_finds_nothing_else(tmp_path: Path) -> None:
    done = Project(tmp_path / "project").snakemake("--lint")
    assert set(re.findall(r"^    \* (.*):$", done.stdout + done.stderr, re.M)) == {SOFTWARE}


def test_the_plan_of_a_new_study_gives_true_reasons(tmp_path: Path) -> None:
    done = Project(tmp_path / "project").snakemake("--dry-run")
    output = done.stdout + done.stderr
    reasons = output.partition("\nReasons:\n")[2]
    headings = re.findall(r"^    (\w.*):$", reasons, re.M)
    assert headings == ["input files updated by another job", "output files have to be generated"]
    assert len(output) < MOST_TEXT


def test_a_setting_that_the_workflow_does_not_know_is_refused(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    for option, words in (("--config=studdy=config/mini.yaml", "has the key 'studdy'"),
                          ("--configfile=config/mini.yaml", "name its file: snakemake --config study=FILE"),
                          ("--config=png=maybe", "give png=yes or png=no")):  # fmt: skip
        done = project.snakemake("--dry-run", option)
        assert done.returncode != 0
        assert words in done.stdout + done.stderr
    assert not (project.folder / "results").exists()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("name: mini", "name: other", "belongs to study 'mini'"),
        ("drives: [op7, op28]", "drives: [op7, op29]", "op29"),
        ("{shipped: sqlite-inserts}", json.dumps({"file": f"own/{ATTACK}.parquet"}), "has '<' or '>'"),
    ],
)
def test_another_study_a_mistake_and_a_path_of_html_are_refused(copy: Project, old: str, new: str, words: str) -> None:
    copy.edit(copy.study, old, new)
    refused = copy.snakemake("--dry-run")
    assert refused.returncode != 0
    assert words in refused.stdout + refused.stderr
    assert "Traceback" not in refused.stdout + refused.stderr


def test_the_workflow_is_usable_as_a_module(tmp_path: Path) -> None:
    project, deployed = Project(tmp_path / "project"), tmp_path / "deployed"
    for name in ("config", "profiles"):
        shutil.copytree(project.folder / name, deployed / name)
    (deployed / "workflow").mkdir()
    snakefile = DEPLOYED.format(snakefile=project.folder / "Snakefile")
    (deployed / "workflow/Snakefile").write_text(snakefile)
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--nocolor", "--dry-run"]
    done = subprocess.run(command, cwd=deployed, env=project.environment, capture_output=True, text=True, check=False)
    assert re.search(r"^measure +\d+$", done.stdout + done.stderr, re.M), done.stderr
    assert re.search(r"^all +1$", done.stdout + done.stderr, re.M)


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


_ONE_DRIVE = _ORDERED.replace("[op7, op28]", "[op7]").replace("runs: 3\n", "").replace("{random: 5}", "fixed")


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
            assert len(plans) == 1
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
         "--until", "purge", "--notemp"],
        cwd=project.folder, env=project.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((project.folder / "results/plans").rglob("*.json"))) == 6
    assert "a timer was started" not in done.stdout


class Elements(HTMLParser):
    """The names of a page's elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)


def test_no_text_of_a_study_becomes_html(copy: Project) -> None:
    copy.edit(copy.study, "basis: ", f"title: {ATTACK}\nbasis: ")
    for key in ("title", "source"):
        copy.edit("config/protocols/pts-iops.yaml", f"\n{key}: ", f"\n{key}: {ATTACK} ")
    done = copy.snakemake("--report", "own.html")
    assert done.returncode == 0, done.stderr
    text = (copy.folder / "own.html").read_text()
    assert "script" in Elements(text).names
    assert "img" not in Elements(text).names
    assert "<img src=x" not in text


def test_snakemakes_own_report_shows_the_figures_with_their_captions(drawn: Project, tmp_path: Path) -> None:
    copy = drawn.copied(tmp_path / "project")
    done = copy.snakemake("--report", "snakemake-report.html")
    assert done.returncode == 0, done.stdout + done.stderr
    text = (copy.folder / "snakemake-report.html").read_text(encoding="utf-8")
    for name in ("convergence_mixes.svg", "saturation_time.svg", "index.html"):
        assert name in text
    caption = ALL["convergence_mixes"].caption.split()[:6]
    assert " ".join(caption) in text
