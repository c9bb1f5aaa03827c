"""The workflow as Snakemake's own checks and plans show it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from mini_project import Project

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


def test_a_misspelt_setting_is_refused(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    done = project.snakemake("--dry-run", "--config", "studdy=config/mini.yaml")
    assert done.returncode != 0
    assert "'studdy' was unexpected" in done.stdout + done.stderr
    assert not (project.folder / "results").exists()


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
