"""drivelab as users install it: a wheel in a clean environment, with no checkout to read from."""

from __future__ import annotations

import site
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from wheels import PIP, build_wheel, make_environment, variables

from drivelab.plan.places import ROOT

WATCH = """\
import os, sys
def note(event, arguments):
    for path in arguments[:2] if event in ("open", "os.listdir", "os.scandir", "subprocess.Popen") else ():
        for text in path if isinstance(path, (list, tuple)) else [path]:
            text = os.fsdecode(text) if isinstance(text, (str, bytes)) else ""
            if text.startswith({checkout!r}) and not text.startswith({environment!r}):
                os.write(log, (text + "\\n").encode())
log = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
sys.addaudithook(note)
"""
"""Module that each Python process of the environment imports; logs what is read of the checkout."""


class Installation:
    """A virtual environment with the wheel, and the dependencies of this environment."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "read.log"
        self.wheel = build_wheel(folder, "--no-build-isolation")
        self.python = make_environment(folder / "venv")
        install = [*PIP, "--python", self.python, "install", "-q", "--no-deps", "--no-index", self.wheel]
        subprocess.run(install, check=True)
        packages = next(folder.glob("venv/lib/python3*/site-packages"))
        watch = WATCH.format(checkout=f"{ROOT}/", environment=sys.prefix, log=str(self.log))
        (packages / "watch_reads.py").write_text(watch)
        paths = [path for path in site.getsitepackages() if Path(path).is_dir()]
        (packages / "dependencies.pth").write_text("\n".join([*paths, "import watch_reads", ""]))

    def run(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment."""
        environment = variables(self.python, self.folder)
        return subprocess.run(arguments, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return Installation(tmp_path_factory.mktemp("installed"))


SIMULATED = """\
name: simulated
results: results
clock: virtual
drives: [op7]
traces:
  sqlite: {shipped: sqlite-inserts}
measurements:
  - protocol: pts-iops
    scale: demo
    set: {loop: {runtime: 100ms}}
  - {protocol: trace-replay, scale: demo, trace: sqlite}
"""
"""A loop and a replay, with figures and a report."""
pytestmark = [pytest.mark.long, pytest.mark.xdist_group("installed")]


def test_wheel_has_everything_that_the_checkout_ships(installed: Installation) -> None:
    names = set(zipfile.ZipFile(installed.wheel).namelist())
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    folders = ("workflow/", "profiles/", "config/", "traces/", "scripts/applications/")
    shipped = [name for name in tracked if name.startswith(folders) or name == "Snakefile"]
    library = [name.removeprefix("scripts/") for name in tracked if name.startswith("scripts/drivelab/")]
    assert {f"drivelab/shipped/{name}" for name in shipped} <= names
    assert set(library) <= names
    assert not any("__pycache__" in name or name.startswith("tests/") for name in names)


def test_a_study_runs_in_a_new_project_without_the_checkout(installed: Installation) -> None:
    done = installed.run("drivelab", "init", "mine", cwd=installed.folder)
    assert done.returncode == 0, done.stderr
    assert "cd mine\n  drivelab demo" in done.stdout
    project = installed.folder / "mine"
    (project / "config/simulated.yaml").write_text(SIMULATED)
    for command in (["study", "check", "config/simulated.yaml"], ["plan", "config/demo.yaml"],
                    ["run", "config/simulated.yaml"], ["query", "SELECT * FROM summary"],
                    ["report", "config/simulated.yaml"], ["trace", "info", "traces/sqlite-inserts.parquet"],
                    ["doctor"]):  # fmt: skip
        done = installed.run("drivelab", *command, cwd=project / "config" if command[0] == "plan" else project)
        assert done.returncode in ((0, 1) if command == ["doctor"] else (0,)), (command, done.stdout, done.stderr)
    assert (project / "results/report/index.html").exists()
    plain = ["snakemake", "-n", "--config", "study=config/simulated.yaml"]
    done = installed.run(str(installed.python), "-m", *plain, cwd=project)
    assert "Nothing to be done" in done.stdout + done.stderr
    done = installed.run(str(installed.python), "-m", "drivelab.native", cwd=project)
    assert done.stdout.startswith(str(installed.folder / "venv/lib/drivelab")), done.stderr
    assert installed.log.read_text() == ""


def test_outside_a_project_nothing_is_written_to_the_installation(installed: Installation) -> None:
    place = installed.folder / "elsewhere"
    place.mkdir()
    for command in (["demo"], ["run"], ["study", "new", "mine", "--drives", "op7"]):
        done = installed.run("drivelab", *command, cwd=place)
        assert (done.returncode, done.stdout) == (2, "")
        assert "Make one with 'drivelab init DIR'" in done.stderr
    done = installed.run("drivelab", "protocol", "show", "pts-iops", cwd=place)
    assert done.returncode == 0, done.stderr
    done = installed.run("drivelab", "quick", "--history", cwd=place)
    assert "To take the first, run: drivelab quick ." in done.stderr
    assert (installed.folder / "data/drivelab/config/protocols/quick.yaml").exists()
    assert list(place.iterdir()) == []
