"""Drives measured at the same time through Snakemake: one measuring job, separate conditioning."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from head_to_head import protocol
from mini_project import Project

from drivelab.recording.writer import read_journal
from drivelab.tables import io

PROTOCOL = protocol("100ms", "1s", queue_depth=4)
STUDY = """\
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
def project(tmp_path: Path) -> Project:
    example = Project(tmp_path / "project")
    (example.folder / "config/protocols/head-to-head.yaml").write_text(PROTOCOL)
    (example.folder / "config/mini.yaml").write_text(STUDY)
    return example


def measuring(jobs: dict[str, int]) -> dict[str, int]:
    return {rule: count for rule, count in jobs.items() if rule.startswith(("purge", "precondition", "measure"))}


@pytest.mark.long
def test_one_job_for_all_drives_and_nothing_twice(project: Project) -> None:
    assert measuring(project.to_do()) == {"purge": 3, "precondition": 3, "measure": 3, "measure_together": 1}
    project.run()
    assert project.to_do() == {}
    recordings = {path.split("/")[2]: project.folder / path for path in project.recordings() if "head" in path}
    assert recordings.keys() == {"op7", "op28"}
    for drive, manifest in recordings.items():
        (other,) = recordings.keys() - {drive}
        met = [line["with"] for line in read_journal(manifest.parent) if line["event"] == "together"]
        assert met == [[other], [other]]
    deltas = io.read(project.folder / "results/tables/deltas.parquet", "deltas")
    assert set(deltas["measurement"]) == {"head-to-head"}
    shutil.rmtree(project.folder / ".snakemake")
    assert measuring(project.to_do()) == {}

    before = project.recordings()
    shutil.rmtree(recordings["op28"].parent)
    assert measuring(project.to_do()) == TOGETHER, "one drive alone cannot be measured again"
    project.run()
    assert project.to_do() == {}
    assert {path for path, at in project.recordings().items() if before[path] == at} == {
        path for path in before if "/alone/" in path
    }


def test_a_simultaneous_job_takes_one_place(project: Project) -> None:
    dry = project.snakemake("--dry-run")
    assert dry.returncode == 0, dry.stdout + dry.stderr
    (job,) = re.findall(r"rule measure_together:\n((?:    .*\n)+)", dry.stdout + dry.stderr)
    assert re.search(r"\bhost_\w+=1\b", job)
    assert "drive_" not in job.partition("resources:")[2], "one measurement at a time, so drives need no limit"
