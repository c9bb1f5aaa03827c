"""A finished study in an archive: the same bytes again, restored elsewhere with nothing left to do, a valid crate."""

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
from crate_rules import broken_rules, graph_of, listed
from mini_project import Project

AUTHOR = ("--author", "Ada Lovelace <0000-0002-1825-0097>", "--license", "CC-BY-4.0")


def ran(project: Project, *arguments: str) -> str:
    done = project.drivelab(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def archive(finished: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "mini.tar.gz"
    told = ran(finished, "archive", "create", "config/mini.yaml", "-o", str(path), *AUTHOR)
    assert hashlib.sha256(path.read_bytes()).hexdigest() in told
    return path


@pytest.fixture
def fresh(finished: Project, tmp_path: Path) -> Project:
    """The project as after a checkout: no results, files as new as can be."""
    again = Project.__new__(Project)
    again.folder = tmp_path / "fresh"
    gone = shutil.ignore_patterns("results", ".snakemake", "__pycache__")
    shutil.copytree(finished.folder, again.folder, ignore=gone, copy_function=shutil.copy)
    return again


def test_the_same_study_makes_the_same_bytes(copy: Project, archive: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.tar.gz"
    ran(copy, "archive", "create", "config/mini.yaml", "-o", str(again), *AUTHOR)
    assert again.read_bytes() == archive.read_bytes()


def test_a_study_that_is_run_is_refused_and_one_that_was_killed_is_not(tmp_path: Path) -> None:
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
        for what in ("create", "crate"):
            done = project.drivelab("archive", what, "config/mini.yaml", "-o", str(out / what))
            assert running.poll() is None, "it ended before it was archived"
            assert done.returncode == 2, done.stdout + done.stderr
            assert "study 'mini' is being run, and cannot be archived; wait for it, or end it first" in done.stderr
        assert list(out.iterdir()) == []
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    while (done := project.drivelab("archive", "create", "config/mini.yaml", "-o", str(out / "a.tar.gz"))).returncode:
        assert re.search("is at work: |changed while it was archived", done.stderr)  # its stages end after it
    assert "as it was written" in ran(project, "archive", "verify", str(out / "a.tar.gz"))


def test_after_restoring_nothing_is_to_do_and_what_changes_is_noticed(
    finished: Project, fresh: Project, archive: Path
) -> None:
    assert "restored" in ran(fresh, "archive", "restore", str(archive))
    assert fresh.to_do() == {}
    for name in ("report/index.html", "tables/summary.parquet"):
        assert (fresh.folder / "results" / name).read_bytes() == (finished.folder / "results" / name).read_bytes()
    assert fresh.recordings().keys() == finished.recordings().keys()
    assert "0 files of the study restored" in ran(fresh, "archive", "restore", str(archive))
    assert "6 of 6 recordings are as they were measured" in ran(fresh, "verify", "results/recordings")
    fresh.edit("config/mini.yaml", "relative_standard_error: 5%", "relative_standard_error: 4%")
    to_do = fresh.to_do()
    assert "summary" in to_do
    assert not {"measure", "replay", "tables"} & to_do.keys()


def test_a_file_with_another_content_stops_it_before_it_begins(fresh: Project, archive: Path) -> None:
    fresh.edit("config/mini.yaml", "basis: op7", "basis: op28")
    done = fresh.drivelab("archive", "restore", str(archive))
    assert done.returncode == 2
    assert "config/mini.yaml" in done.stderr
    assert not (fresh.folder / "results").exists()


def test_verify_names_what_was_altered(finished: Project, archive: Path, tmp_path: Path) -> None:
    altered = tmp_path / archive.name
    data = bytearray(archive.read_bytes())
    data[len(data) // 2] ^= 4
    altered.write_bytes(data)
    done = finished.drivelab("archive", "verify", str(archive), str(altered), "--json")
    assert done.returncode == 1
    whole, broken = json.loads(done.stdout)
    assert whole["altered"] == {}
    assert whole["compared"]
    assert set(broken["altered"].values()) <= {"altered", "unreadable"}
    assert 2 <= len(broken["altered"]) <= 3  # the archive itself, and the member; of a large one also the one behind


def test_common_tools_read_it(archive: Path, tmp_path: Path) -> None:
    commands = f"cd {tmp_path} && sha256sum --check --quiet {archive.name}.sha256 && tar xzf {archive.name} && cd mini"
    for path in (archive, archive.with_name(f"{archive.name}.sha256")):
        shutil.copy(path, tmp_path)
    subprocess.run(["sh", "-ec", f"{commands} && sha256sum --check --quiet SHA256SUMS"], check=True)
    assert (tmp_path / "mini/results/report/index.html").is_file()
    assert broken_rules(tmp_path / "mini") == []


def test_the_crate_says_what_each_recording_was_made_with(finished: Project, tmp_path: Path) -> None:
    folder = tmp_path / "crate"
    ran(finished, "archive", "crate", "config/mini.yaml", "-o", str(folder), *AUTHOR)
    assert broken_rules(folder) == []
    graph = graph_of(folder)
    assert graph["./"]["author"] == {"@id": "https://orcid.org/0000-0002-1825-0097"}
    assert graph["./"]["license"] == {"@id": "https://spdx.org/licenses/CC-BY-4.0"}
    made = {one["result"]["@id"]: one for one in graph.values() if one["@type"] == "CreateAction"}
    assert {f"{Path(one).parent}/" for one in finished.recordings()} == made.keys()
    for place, action in made.items():
        objects = {one["@id"]: graph[one["@id"]] for one in listed(action["object"])}
        drives = [one for one in objects.values() if "serialNumber" in one]
        assert [one["serialNumber"] for one in drives] == [f"VIRTUAL-{place.split('/')[2].upper()}"]
        assert f"{place}plan.json" in objects
        assert ("traces/sqlite-inserts.parquet" in objects) == ("trace-replay" in place)
        assert {graph[one["@id"]]["name"] for one in listed(action["instrument"])} >= {"drivelab", "Linux"}
        plan = folder / place / "plan.json"
        assert graph[f"{place}plan.json"]["sha256"] == hashlib.sha256(plan.read_bytes()).hexdigest()
    assert len(graph["results/report/"]["isBasedOn"]) == len(made)
    assert "as it was written" in ran(finished, "archive", "verify", str(folder))
