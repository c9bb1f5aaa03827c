"""A study that is run drive by drive, by the real Snakemake: a drive that fails, a lost recording, a killed run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fleet_project import fleet_project
from mini_project import Project

from drivelab.tables import io
from drivelab.virtual.faults import Fault, set_faults

JOINED = {"fleet_tables": 1, "fleet_deltas": 1, "fleet_report": 1, "fleet_complete": 1}
PATIENCE_S = 120.0
"""Only ends a test that has failed."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Three drives, one short soak each; the tests go on with it one after another."""
    made = fleet_project(tmp_path_factory.mktemp("fleet") / "project", 3)
    study = made.folder / "config/mini.yaml"
    first, second = (
        study.read_text().index("  - protocol: pts-iops"),
        study.read_text().index("  - protocol: pts-write"),
    )
    study.write_text(study.read_text()[:first] + study.read_text()[second:])
    return made


def outcomes(project: Project) -> dict[str, str]:
    found = (project.folder / "results/drives").glob("*/outcome.*.json")
    return {one.parent.name: one.name for one in found}


def evidence(project: Project) -> dict[str, int]:
    found = (project.folder / "results/drives").glob("*/recordings/*/*/*/recording.json")
    return {one.relative_to(project.folder / "results/drives").parts[0]: one.stat().st_mtime_ns for one in found}


def lose_recording(project: Project, drive: str) -> None:
    (manifest,) = (project.folder / f"results/drives/{drive}").glob("recordings/*/*/*/recording.json")
    for path in sorted(manifest.parent.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    manifest.parent.rmdir()


def test_a_drive_that_fails_is_named_and_stops_no_other(project: Project) -> None:
    state = project.folder / "results/drives/d2/virtual/FLEET-d2.state"
    state.parent.mkdir(parents=True)
    set_faults(state, Fault("gone"))
    done = project.snakemake()
    assert done.returncode != 0
    assert "1 of 3 drives were not measured" in done.stdout + done.stderr
    assert evidence(project).keys() == {"d1", "d3"}
    drives = io.read(project.folder / "results/tables/fleet_drives.parquet", "fleet_drives").set_index("drive")
    assert drives["state"].to_dict() == {"d1": "measured", "d2": "failed", "d3": "measured"}
    assert "the drive says" in drives.loc["d2", "reason"]
    report = (project.folder / "results/report/index.html").read_text()
    assert "2 of 3 drives were measured" in report
    assert "d2: " in report
    set_faults(state)


def test_the_next_run_measures_that_drive_alone(project: Project) -> None:
    before = evidence(project)
    assert project.to_do() == {"drive": 1, **JOINED}
    done = project.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    after = evidence(project)
    assert after.keys() == {"d1", "d2", "d3"}
    assert before.items() <= after.items()
    assert outcomes(project) == {"d1": "outcome.1.json", "d2": "outcome.2.json", "d3": "outcome.1.json"}
    assert project.to_do() == {}
    deltas = project.folder / "results/tables/deltas"
    assert {one.name for one in deltas.glob("*/")} >= {"d2", "d3"}


def test_commands_see_the_tables_and_recordings_of_every_drive(project: Project) -> None:
    sql = "SELECT count(DISTINCT drive) AS n FROM summary"
    assert '"n": 3' in project.drivelab("query", sql, "--results", "results", "--format", "json").stdout
    assert "d3 against d1" in project.drivelab("compare", "d1", "d3", "--results", "results").stdout
    verified = project.drivelab("verify", "results")
    assert verified.stdout.startswith("3 of 3 recordings are as they were measured")


def test_a_run_that_is_killed_goes_on_and_leaves_nothing_behind(project: Project) -> None:
    """A recording is lost, and the run that makes it again is killed in the middle: only its drive is concerned."""
    lose_recording(project, "d3")
    before = evidence(project)
    assert project.to_do() == {"drive": 1, **JOINED}
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--config", "study=config/mini.yaml"]
    status = project.folder / "results/drives/d3/status/d3.json"
    status.unlink()
    with subprocess.Popen(command, cwd=project.folder, env=project.environment, stderr=subprocess.DEVNULL) as run:
        wait(status.exists)
        run.send_signal(signal.SIGKILL)
    wait(lambda: not at_work(project.folder))
    assert outcomes(project)["d3"] == "outcome.1.json"
    assert project.snakemake("--unlock").returncode == 0
    done = project.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    assert before.items() <= evidence(project).items()
    assert outcomes(project) == {"d1": "outcome.1.json", "d2": "outcome.2.json", "d3": "outcome.2.json"}
    assert project.to_do() == {}


def at_work(folder: Path) -> list[int]:
    """Processes in the project's folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve() == folder and int(process.name) != os.getpid():
                found.append(int(process.name))
        except OSError:
            continue
    return found


def wait(until: object) -> None:
    assert callable(until)
    deadline_s = time.monotonic() + PATIENCE_S
    while not until():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
