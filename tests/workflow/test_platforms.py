"""Platforms through Snakemake: two on this host, and one on another host before and after its recording."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mini_project import Project

from drivelab.tables import io

STUDY = """\
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
        (copy.folder / "config/mini.yaml").write_text(STUDY)
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


@pytest.mark.long
def test_without_a_measured_basis_there_are_no_deltas(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    (project.folder / "config/mini.yaml").write_text(STUDY.replace("basis: op7@quiet", "basis: op7@far"))
    project.run()
    assert compared(project) == set()
    assert project.to_do() == {}
