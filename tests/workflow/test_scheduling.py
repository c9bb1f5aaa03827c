"""What Snakemake itself costs the host that measures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mini_project import Project

pytestmark = pytest.mark.xdist_group("workflow")

RUN_AND_TELL_OF_TIMERS = """\
import sys
from snakemake.cli import main
from snakemake.scheduling.job_scheduler import JobScheduler

JobScheduler._schedule_reevalutation = lambda scheduler, delay: print("a timer was started")
main(sys.argv[1:])
"""


def test_no_timer_wakes_snakemake_while_jobs_wait_for_a_drive(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    done = subprocess.run(
        [sys.executable, "-c", RUN_AND_TELL_OF_TIMERS, "--cores", "1", "--config", "study=config/mini.yaml",
         "--until", "plan", "--notemp"],
        cwd=project.folder, env=project.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((project.folder / "results/plans").rglob("*.json"))) == 6
    assert "a timer was started" not in done.stdout
