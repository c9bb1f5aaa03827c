"""Ctrl-C at any moment gives a defined exit status and at most one message."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mini_project import Project

STUDY = """\
name: mine
results: results
clock: virtual
drives: [op7]
measurements: [{protocol: pts-iops, scale: demo}]
"""
MAIN = "import sys; from drivelab.cli.main import main; sys.exit(main(sys.argv[1:]))"
# The interpreter handles the signal at the end of the call, before it executes the next line.
AT_IMPORT = """\
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class AtImport:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, AtImport())
"""
AFTER_A_LINE = """\
import builtins, os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
say = builtins.print
def print_and_interrupt(*values, **options):
    say(*values, **options)
    os.kill(os.getpid(), signal.SIGINT)
builtins.print = print_and_interrupt
"""


def run(code: str, *arguments: str, project: Project | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python code, in a copy of the project and with its library if one is given."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=project and project.folder,
        env=project and project.environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A copy of the whole project: `watch` reads the results of the project that contains its library."""
    project = Project(tmp_path / "project")
    (project.folder / "config/mine.yaml").write_text(STUDY)
    return project


def test_only_fast_imports_precede_the_signal_handlers() -> None:
    code = (
        "import sys; before = set(sys.modules); import drivelab.cli.main; "
        "print(*sorted(name for name in set(sys.modules) - before "
        "if name.partition('.')[0] not in sys.stdlib_module_names))"
    )
    assert run(code).stdout.split() == [
        "drivelab", "drivelab.cli", "drivelab.cli.main", "drivelab.core", "drivelab.core.errors",
        "drivelab.core.terminal",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        "drivelab.cli.share.archive",
        "jsonschema",
        "drivelab.cli.measure.watch",
        "drivelab.watch.study_view",
        "drivelab.watch.text",
    ],
)
def test_interrupt_while_modules_are_imported(project: Project, name: str) -> None:
    done = run(AT_IMPORT.format(name=name) + MAIN, "watch", "config/mine.yaml", project=project)
    assert done.returncode in (0, 130), done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == (done.returncode == 130), done.stderr


def test_interrupt_after_a_line_is_printed(project: Project) -> None:
    done = run(AFTER_A_LINE + MAIN, "watch", "config/mine.yaml", project=project)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(
        ": waiting, 0 of 1 measurements done; no run has begun, start one with ./drivelab run\n"
    )
