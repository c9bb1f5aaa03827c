"""The page on file systems, run as printed, with the types that this host has and a shortened protocol."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from doc_commands import arguments, with_rows
from doc_pages import ROOT, blocks
from leftovers import leftovers
from mini_project import Project
from waits import DRIVELAB

from drivelab.core.errors import UserError
from drivelab.plan.file_system import FileSystem
from drivelab.run.file_system_device import refuse_unready
from drivelab.tables import io

pytestmark = [pytest.mark.device, pytest.mark.single]

PAGE = "docs/how-to/filesystems.md"
STUDY = "config/fs.yaml"
SHORT = {"settle": "10ms", "rest": "100ms", "loop": {"cold_rounds": 0, "runtime": "200ms", "until": {"rounds": 1}}}


def available(kind: str) -> bool:
    try:
        refuse_unready(FileSystem(kind))
    except UserError:
        return False
    return True


def with_types_of_this_host(line: str) -> str:
    """Return a command with the file systems that can be made and mounted here."""
    return re.sub(r"(?<=--filesystems )\S+", lambda match: ",".join(filter(available, match[0].split(","))), line)


def shorten(study: Path) -> list[str]:
    """Shorten the study, and return the names of its platforms."""
    body = yaml.safe_load(study.read_text())
    assert (body["runs"], body["order"]) == (3, {"random": 1})
    body["runs"] = 1
    body["measurements"] = [{"protocol": "filesystem-comparison", "set": SHORT}]
    study.write_text(yaml.safe_dump(body, sort_keys=False))
    return list(body["platforms"])


def test_the_page_does_what_it_says(run_directory: Path, tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    platforms: list[str] = []
    printed = ""
    for block in blocks(PAGE):
        kind, _, name = block.directive.rpartition(" ")
        if kind == "rows":
            (project.folder / name).write_text(with_rows(block.text))
        elif kind == "entry":
            (project.folder / name).write_text((ROOT / name).read_text() + block.text)
        elif block.directive == "printed":
            lines = [re.escape(line).replace("…", ".*?") for line in block.text.splitlines()]
            assert "btrfs" not in platforms or re.search("\n".join(lines), printed, re.S), printed
        elif block.language == "sh":
            for line in block.commands():
                if line.startswith("apt-get") or (" compare " in line and "btrfs" not in platforms):
                    continue
                command = [*DRIVELAB, *arguments(with_types_of_this_host(line))]
                done = subprocess.run(
                    command, cwd=project.folder, env={**project.environment, "COLUMNS": "200"}, capture_output=True,
                    text=True, check=False, stdin=subprocess.DEVNULL,
                )  # fmt: skip
                assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
                printed = done.stdout
                if " study new " in line:
                    platforms = shorten(project.folder / STUDY)
    assert "ext4" in platforms
    drives = io.read(project.folder / "results/fs/tables/drives.parquet", "drives")
    assert set(drives["file_system"]) == set(platforms)
    differences = io.read(project.folder / "results/fs/tables/differences.parquet", "differences")
    ours = differences[differences["kind"] == "file system"]
    assert set(ours["comparison"]) == {f"alpha@{name}" for name in platforms if name != "ext4"}
    assert ours["intended"].all()
    report = (project.folder / "results/fs/report/index.html").read_text()
    assert all(f"alpha@{name}" in report for name in platforms)
    pages = "".join(path.read_text() for path in (project.folder / "results/fs/report").rglob("*.html"))
    assert "lazy_itable_init=0" in pages, "the report says how ext4 was made"
    assert [mount for mount in leftovers() if mount.startswith("mount") and "virtual" not in mount] == []
