"""A study that grows until it is decided: looks, batches, and a kill in between."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from mini_project import Project

from drivelab.tables import io

STUDY = """\
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
    (project.folder / project.study).write_text(STUDY)
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
    assert looks(killed) == looks(undisturbed)
