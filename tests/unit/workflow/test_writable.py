"""Results of another user are refused with one message, before any write."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
OTHER = "nobody"
_STUDY = """\
name: mini
results: results
clock: virtual
basis: op7
drives: [op7, op28]
measurements:
  - protocol: pts-iops
    scale: demo
"""
_DRIVELAB = "import sys; from drivelab.cli.main import main; sys.exit(main())"


class Checkout:
    """A project of another user, who runs its commands, with results of this user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        for name in ("config", "traces", "workflow", "profiles", "scripts"):
            shutil.copytree(ROOT / name, self.folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "Snakefile", self.folder)
        (self.folder / "config/mini.yaml").write_text(_STUDY)
        for path in (folder, self.folder, *self.folder.rglob("*")):
            shutil.chown(path, OTHER)
        results = self.folder / "results"
        (results / "tables").mkdir(parents=True)
        (results / "tables/summary.parquet").touch()

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        packages = sysconfig.get_path("purelib")
        beside = f"python3.{sys.version_info.minor}"  # the environment's own Python may be in a private home folder
        environment = {"PYTHONPATH": f"{self.folder}/scripts:{packages}", "HOME": str(self.folder), "PATH": os.defpath}
        for program in (sys.executable, shutil.which(beside, path="/usr/local/bin:/usr/bin")):
            command = ["setpriv", "--reuid", OTHER, "--clear-groups", str(program)]
            tried = subprocess.run([*command, "-c", "import yaml"], env=environment, capture_output=True, check=False)
            if tried.returncode == 0:
                return subprocess.run([*command, *arguments], env=environment, cwd=self.folder, capture_output=True,
                                      text=True, check=False)  # fmt: skip
        pytest.skip("another user cannot start a Python with the packages")

    def run(self) -> subprocess.CompletedProcess[str]:
        return self.python("-c", _DRIVELAB, "run", "config/mini.yaml")


@pytest.fixture
def checkout() -> Iterator[Checkout]:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("running as another user needs root and setpriv")
    with tempfile.TemporaryDirectory(prefix="drivelab-") as folder:  # pytest's own folders are private
        yield Checkout(Path(folder))


def output_of(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode != 0
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_results_folder_of_another_user_is_refused_before_any_write(checkout: Checkout) -> None:
    before = sorted(checkout.folder.glob("results/**/*"))
    assert output_of(checkout.run()) == (
        "drivelab: results: belongs to user 'root', and you may not write to it; let one user run the study, or give "
        "each user a separate project folder and 'results'\n"
    )
    assert sorted(checkout.folder.glob("results/**/*")) == before


def test_a_file_of_another_user_is_refused_by_name(checkout: Checkout) -> None:
    for folder in ("results", "results/tables"):
        (checkout.folder / folder).chmod(0o777)
    for done in (
        checkout.run(),
        checkout.python("-m", "snakemake", "--cores", "1", "--config", "study=config/mini.yaml"),
    ):
        assert "results/tables/summary.parquet" in output_of(done)


def test_snakemake_records_of_another_user_are_refused(checkout: Checkout) -> None:
    shutil.rmtree(checkout.folder / "results")
    (checkout.folder / ".snakemake/metadata").mkdir(parents=True)
    (checkout.folder / ".snakemake").chmod(0o777)
    assert ".snakemake/metadata: belongs to user 'root'" in output_of(checkout.run())


def test_finished_recordings_of_another_user_and_a_plan_are_allowed(checkout: Checkout) -> None:
    shutil.rmtree(checkout.folder / "results/tables")
    recording = checkout.folder / "results/recordings/op7/pts-iops/0123456789ab-run1"
    recording.mkdir(parents=True)
    (recording / "recording.json").touch()
    (recording / "journal.jsonl").touch()
    recording.chmod(0o777)
    for folder in recording.parents[:4]:
        folder.chmod(0o777)
    dry = checkout.python("-m", "snakemake", "-n", "--quiet", "--config", "study=config/mini.yaml")
    assert dry.returncode == 0, dry.stdout + dry.stderr
    (checkout.folder / "results").chmod(0o755)
    assert checkout.python("-c", _DRIVELAB, "plan", "config/mini.yaml").returncode == 0
