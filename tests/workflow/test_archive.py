"""Archives of a finished study: verified, and restored with nothing left to measure."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mini_project import Project

from drivelab.tables import io


class RestoredProject(Project):
    """A study restored in another project, whose library it uses."""

    @property
    def environment(self) -> dict[str, str]:
        return Project.at(self.folder.parents[1]).environment


def ran(project: Project, *arguments: str) -> str:
    done = project.drivelab(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def archive(finished: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "mini.tar.gz"
    output = ran(finished, "archive", "create", "config/mini.yaml", "-o", str(path))
    assert hashlib.sha256(path.read_bytes()).hexdigest() in output
    return path


@pytest.fixture
def fresh(finished: Project, tmp_path: Path) -> Project:
    """The project as after a checkout: without results, all files new."""
    gone = shutil.ignore_patterns("results", ".snakemake", "__pycache__")
    return Project.at(shutil.copytree(finished.folder, tmp_path / "fresh", ignore=gone, copy_function=shutil.copy))


@pytest.mark.long
def test_a_running_study_is_not_archived_and_a_killed_one_is(tmp_path: Path) -> None:
    project, out = Project(tmp_path / "project"), tmp_path / "out"
    out.mkdir()
    command = [sys.executable, "-c", "import sys; from drivelab.cli.main import main; sys.exit(main())", "run"]
    running = subprocess.Popen(
        [*command, "config/mini.yaml"], cwd=project.folder, env=project.environment, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while running.poll() is None and not project.recordings():
            time.sleep(0.01)
        done = project.drivelab("archive", "create", "config/mini.yaml", "-o", str(out / "a.tar.gz"))
        assert running.poll() is None, "the run ended before the archive command"
        assert done.returncode == 2, done.stdout + done.stderr
        assert "study 'mini' is running and cannot be archived now; wait for it or stop it" in done.stderr
        assert list(out.iterdir()) == []
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    while (done := project.drivelab("archive", "create", "config/mini.yaml", "-o", str(out / "a.tar.gz"))).returncode:
        assert re.search("is running |changed while it was archived", done.stderr)  # its stages end later than the run
    assert "all files as archived" in ran(project, "archive", "verify", str(out / "a.tar.gz"))


@pytest.fixture
def restored(fresh: Project, archive: Path) -> Project:
    """The study after `archive restore` in another project: a separate folder without code."""
    assert "run restored/mini/config/mini.yaml" in ran(fresh, "archive", "restore", str(archive))
    return RestoredProject.at(fresh.folder / "restored/mini")


def to_do(fresh: Project, restored: Project) -> dict[str, int]:
    """Return the number of jobs by rule that a run of the restored study would have."""
    dry = restored.snakemake("--dry-run", "--snakefile", str(fresh.folder / "Snakefile"))
    assert dry.returncode == 0, dry.stdout + dry.stderr
    return restored.jobs_in(dry.stdout + dry.stderr)


STUDY = "restored/mini/config/mini.yaml"


@pytest.mark.long
def test_a_restored_study_computes_its_tables_again(copy: Project, fresh: Project, tmp_path: Path) -> None:
    """Somebody multiplies all values by ten, keeps the file's time, and archives the study."""
    table = copy.folder / "results/tables/summary.parquet"
    measured, status = table.read_bytes(), table.stat()
    summary = io.read(table, "summary")
    io.write(summary.assign(value=10 * summary["value"]), table, "summary")
    os.utime(table, ns=(status.st_atime_ns, status.st_mtime_ns))
    ran(copy, "archive", "create", "config/mini.yaml", "-o", str(tmp_path / "a.tar.gz"))
    verified = ran(copy, "archive", "verify", str(tmp_path / "a.tar.gz"))
    assert (
        "All recordings are unaltered since they were measured.\nTables, figures and report are not checked" in verified
    )
    ran(fresh, "archive", "restore", str(tmp_path / "a.tar.gz"))
    assert not any((fresh.folder / "restored/mini/results" / name).exists() for name in ("tables", "figures", "report"))
    restored = RestoredProject.at(fresh.folder / "restored/mini")
    before, evidence = restored.recordings(), restored.evidence()
    due = to_do(fresh, restored)
    assert {"tables", "analysis", "report"} <= due.keys()
    assert not {"purge", "precondition", "measure", "replay"} & due.keys()
    assert f"Report: {restored.folder}/results/report/index.html" in ran(fresh, "run", STUDY)
    assert (restored.folder / "results/tables/summary.parquet").read_bytes() == measured
    assert (restored.recordings(), restored.evidence()) == (before, evidence)
    assert to_do(fresh, restored) == {}
    assert "op28" in ran(fresh, "query", "FROM summary", "--results", "restored/mini/results")
    assert "op28 against op7" in ran(fresh, "compare", "op7", "op28", "--study", STUDY)
    assert not (fresh.folder / "results").exists()
    assert not (fresh.folder / ".snakemake").exists()


def test_commands_work_on_a_restored_study_in_place(fresh: Project, restored: Project) -> None:
    assert "6 of 6 measurements done" in ran(fresh, "study", "status", STUDY)
    assert "valid" in ran(fresh, "study", "check", STUDY)
    assert "already recorded" in ran(fresh, "plan", "--commands", STUDY)
    assert "6 of 6 recordings are unaltered" in ran(fresh, "verify", "restored/mini/results/recordings")


@pytest.mark.long
def test_a_restored_study_measures_nothing_until_its_sheet_allows_it(fresh: Project, restored: Project) -> None:
    gone = next(iter(restored.recordings()))
    shutil.rmtree((restored.folder / gone).parent)
    done = fresh.drivelab("run", STUDY)
    assert done.returncode == 2
    assert "has destructive: no, but the study measures it; enter yes or remove the drive" in done.stderr
    sheet = restored.folder / "config/drives.tsv"
    sheet.write_text(sheet.read_text().replace("\tno\t", "\tyes\t"))
    ran(fresh, "run", STUDY)
    assert gone in restored.recordings()


def test_verify_names_what_was_altered(finished: Project, archive: Path, tmp_path: Path) -> None:
    altered = tmp_path / archive.name
    data = bytearray(archive.read_bytes())
    data[len(data) // 2] ^= 4
    altered.write_bytes(data)
    done = finished.drivelab("archive", "verify", str(archive), str(altered), "--json")
    assert done.returncode == 1
    whole, broken = json.loads(done.stdout)
    assert whole["altered"] == {}
    assert whole["compared_beside"]
    assert not whole["compared"]
    assert "the archive itself" in broken["altered"]
