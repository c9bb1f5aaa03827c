"""Studies of several platforms, of drives measured at the same time, and that grow until they are decided."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from head_to_head import protocol
from mini_project import Project

from drivelab.recording.writer import read_journal
from drivelab.tables import io

PLATFORMS = """\
name: mini
results: results
clock: virtual
basis: op7@quiet
drives: [op7]
platforms:
  quiet: {host: any}
  busy: {host: any, scenario: real-world}
  far: {host: far-away}
measurements:
  - {protocol: pts-write-saturation, scale: demo, set: {soak: {slice: 1s, until: {time: 3s}}}}
"""
ELSEWHERE = """\
import platform
from pathlib import Path
platform.node = lambda: "far-away"
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure
from drivelab.campaign.planning import Campaign
for planned in Campaign.load("config/mini.yaml").plans:
    if planned.plan.drive == "op7@far":
        purge(planned.plan, Path("purged"))
        precondition(planned.plan, Path("purged"), Path("sealed"))
        measure(planned.plan, Path("sealed"))
"""


def on_the_other_host(project: Project) -> None:
    """Measure the plans of the other host."""
    environment = {**os.environ, "PYTHONPATH": str(project.folder / "scripts")}
    subprocess.run([sys.executable, "-c", ELSEWHERE], cwd=project.folder, env=environment, check=True)


def compared(project: Project) -> set[tuple[str, str]]:
    deltas = io.read(project.folder / "results/tables/deltas.parquet", "deltas")
    return set(zip(deltas["basis"], deltas["comparison"], strict=True))


@pytest.mark.long
def test_measured_platforms_are_compared(tmp_path: Path) -> None:
    project, far = Project(tmp_path / "project"), Project(tmp_path / "far")
    for copy in (project, far):
        (copy.folder / "config/mini.yaml").write_text(PLATFORMS)
    jobs = project.to_do()
    assert (jobs["purge"], jobs["precondition"], jobs["measure"]) == (2, 2, 2)
    project.run()
    assert {path.split("/")[2] for path in project.recordings()} == {"op7@quiet", "op7@busy"}
    assert compared(project) == {("op7@quiet", "op7@busy")}
    assert project.to_do() == {}

    on_the_other_host(far)
    shutil.copytree(far.folder / "results/recordings", project.folder / "results/recordings", dirs_exist_ok=True)
    jobs = project.to_do()
    assert not jobs.keys() & {"purge", "precondition", "measure"}, "recordings of another host are used unchanged"
    assert jobs["tables"] == 1
    before = project.recordings()
    project.run()
    assert project.recordings() == before
    assert compared(project) == {("op7@quiet", "op7@busy"), ("op7@quiet", "op7@far")}
    page = (project.folder / "results/report/index.html").read_text()
    assert "op7@far" in page
    identifiers = re.findall(r'\bid="([^"]*)"', page)
    assert len(identifiers) == len(set(identifiers))
    assert not [identifier for identifier in identifiers if "@" in identifier]


PROTOCOL = protocol("100ms", "1s", queue_depth=4)
SIMULTANEOUS = """\
name: mini
results: results
clock: virtual
basis: op7
drives: [op7, op28]
measurements:
  - {protocol: head-to-head}
  - {protocol: head-to-head, name: alone, drives: [op28]}
"""
TOGETHER = {"purge": 2, "precondition": 2, "measure_together": 1, "measure": 2}


@pytest.fixture
def simultaneous(tmp_path: Path) -> Project:
    example = Project(tmp_path / "project")
    (example.folder / "config/protocols/head-to-head.yaml").write_text(PROTOCOL)
    (example.folder / "config/mini.yaml").write_text(SIMULTANEOUS)
    return example


def measuring(jobs: dict[str, int]) -> dict[str, int]:
    return {rule: count for rule, count in jobs.items() if rule.startswith(("purge", "precondition", "measure"))}


@pytest.mark.long
def test_one_job_for_all_drives_and_nothing_twice(simultaneous: Project) -> None:
    assert measuring(simultaneous.to_do()) == {"purge": 3, "precondition": 3, "measure": 3, "measure_together": 1}
    simultaneous.run()
    assert simultaneous.to_do() == {}
    recordings = {
        path.split("/")[2]: simultaneous.folder / path for path in simultaneous.recordings() if "head" in path
    }
    assert recordings.keys() == {"op7", "op28"}
    for drive, manifest in recordings.items():
        (other,) = recordings.keys() - {drive}
        met = [line["with"] for line in read_journal(manifest.parent) if line["event"] == "together"]
        assert met == [[other], [other]]
    deltas = io.read(simultaneous.folder / "results/tables/deltas.parquet", "deltas")
    assert set(deltas["measurement"]) == {"head-to-head"}
    shutil.rmtree(simultaneous.folder / ".snakemake")
    assert measuring(simultaneous.to_do()) == {}

    before = simultaneous.recordings()
    shutil.rmtree(recordings["op28"].parent)
    assert measuring(simultaneous.to_do()) == TOGETHER, "one drive alone cannot be measured again"
    simultaneous.run()
    assert simultaneous.to_do() == {}
    assert {path for path, at in simultaneous.recordings().items() if before[path] == at} == {
        path for path in before if "/alone/" in path
    }


def test_a_simultaneous_job_takes_one_place(simultaneous: Project) -> None:
    dry = simultaneous.snakemake("--dry-run")
    assert dry.returncode == 0, dry.stdout + dry.stderr
    (job,) = re.findall(r"rule measure_together:\n((?:    .*\n)+)", dry.stdout + dry.stderr)
    assert re.search(r"\bhost_\w+=1\b", job)
    assert "drive_" not in job.partition("resources:")[2], "one measurement at a time, so drives need no limit"


GROWS = """\
name: mini
results: results
clock: virtual
drives: [op7, op28]
runs: {least: 3, most: 5, until: decided}
measurements:
  - protocol: pts-iops
    name: clear
    scale: demo
    set:
      loop:
        runtime: 100ms
        cells: {read_share: [0], block_size: [4KiB]}
        until: {steady_state: {track: [{read_share: 0, block_size: 4KiB, metric: iops}]}}
  - protocol: pts-iops
    name: close
    scale: demo
    set:
      loop:
        runtime: 100ms
        cells: {read_share: [100], block_size: [4KiB, 64KiB]}
        until: {steady_state: {track: [{read_share: 100, block_size: 4KiB, metric: iops}]}}
analysis: {margin: 0.8%}
"""
COMMAND = [sys.executable, "-c", "import sys; from drivelab.cli.main import main; sys.exit(main())", "run"]


def growing(folder: Path) -> Project:
    project = Project(folder)
    (project.folder / project.study).write_text(GROWS)
    project.end_with_tables()
    return project


def looks(project: Project) -> list[dict[str, int]]:
    path = project.folder / "results/looks.json"
    return [look["runs"] for look in json.loads(path.read_text())["looks"]] if path.exists() else []


def deltas(project: Project) -> pd.DataFrame:
    return io.read(project.folder / "results/tables/deltas.parquet", "deltas")


def back_to_the_first_look(project: Project) -> None:
    """Remove what a finished study made after its first look."""
    results = project.folder / "results"
    record = json.loads((results / "looks.json").read_text())
    (results / "looks.json").write_text(json.dumps({**record, "looks": record["looks"][:1]}))
    for path in [*results.rglob("*-run[45]*"), *results.glob("tables/*.parquet")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


@pytest.mark.long
def test_a_killed_study_grows_on_as_if_undisturbed(tmp_path: Path) -> None:
    undisturbed = growing(tmp_path / "undisturbed")
    done = undisturbed.drivelab("run", undisturbed.study)
    assert done.returncode == 0, done.stderr
    assert "clear after 3 runs: the only headline test is decided at the margin." in done.stdout
    assert "close after 3 runs: the only headline test is undecided at the margin (op28, random read 4" in done.stdout
    assert {name for path in undisturbed.recordings() if "/clear/" in (name := str(path)) and "run4" in name} == set()
    killed = undisturbed.copied(tmp_path / "killed")
    back_to_the_first_look(killed)
    running = subprocess.Popen(
        [*COMMAND, killed.study], cwd=killed.folder, env=killed.environment, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while running.poll() is None and not any("run4/" in str(path) for path in killed.recordings()):
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    kept = killed.evidence()
    assert looks(killed) == looks(undisturbed)[:1]
    resumed = killed.drivelab("run", killed.study)
    assert resumed.returncode == 0, resumed.stderr
    assert "close after 3 runs" not in resumed.stdout
    assert killed.evidence().items() >= kept.items()
    assert looks(killed) == looks(undisturbed)
    pd.testing.assert_frame_equal(deltas(killed), deltas(undisturbed))
    last = max(looks(killed)[-1].values())
    again = killed.drivelab("run", killed.study)
    assert f"close after {last} runs" in again.stdout
    assert "warning" not in again.stdout
    path, judged = killed.folder / killed.study, (killed.folder / "results/judged.json").read_text()
    path.write_text(GROWS.replace("{least: 3, most: 5, until: decided}", "5"))
    assert "analysis" in killed.to_do()
    assert (killed.folder / "results/judged.json").read_text() == judged, "a dry run writes nothing"
    words = "runs changed after a look: 3 to 5, then 5; the confidence of 95 % no longer holds"
    assert f"warning: {words}" in killed.drivelab("run", killed.study).stdout
    assert all(remarks[0].startswith(words) for remarks in deltas(killed)["remarks"])
    assert killed.to_do() == {}
    path.write_text(GROWS)
    killed.drivelab("run", killed.study)
    assert looks(killed) == looks(undisturbed)
