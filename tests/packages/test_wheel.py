"""The wheel in clean environments without the lock: with the newest and the oldest packages that its bounds admit.

The environment with the newest packages is pruned, as docs/install.md shows.
"""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import doc_pages
import pytest
from packaging.requirements import Requirement
from wheels import PIP, build_wheel, make_environment, variables

from drivelab.plan.places import ROOT

MOST_MB = 520
"""The limit of docs/install.md for a pruned environment, with the modules that Python compiled."""
_DEPENDENCIES = [
    Requirement(text) for text in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
]


def oldest() -> dict[str, str]:
    """Return the lower bound of each dependency."""
    bounds = {}
    for dependency in _DEPENDENCIES:
        (bounds[dependency.name],) = [part.version for part in dependency.specifier if part.operator == ">="]
    return bounds


def install(python: Path, wheel: Path, which: str, folder: Path) -> None:
    """Install the wheel and its dependencies; `oldest` constrains each to its lower bound."""
    constraints = folder / "constraints.txt"
    versions = oldest() if which == "oldest" else {}
    constraints.write_text("".join(f"{name}=={version}\n" for name, version in versions.items()))
    command = [*PIP, "--python", python, "install", "-q", "--no-compile", "--prefer-binary", wheel, "-c", constraints]
    subprocess.run(command, check=True)
    listed = subprocess.run([*PIP, "--python", python, "list", "--format=json"], check=True, capture_output=True)
    found = {package["name"].lower(): package["version"] for package in json.loads(listed.stdout)}
    print(which, {dependency.name: found[dependency.name] for dependency in _DEPENDENCIES})
    for dependency in _DEPENDENCIES:
        only = f"=={versions[dependency.name]}" if versions else ""
        assert Requirement(dependency.name + only).specifier.contains(found[dependency.name])


def megabytes(folder: Path) -> int:
    return int(subprocess.run(["du", "-sm", folder], check=True, capture_output=True, text=True).stdout.split()[0])


def headline() -> str:
    """Return the line with the first verdict of the tutorial's study, from the docs."""
    return re.search(r"^  pts-iops .*$", doc_pages.text("docs/tutorial.md"), re.MULTILINE)[0]  # type: ignore[index]


@pytest.mark.parametrize("which", ["newest", "oldest"])
def test_the_wheel_works_without_the_lock(tmp_path: Path, which: str) -> None:
    environment = tmp_path / "environment"
    python = make_environment(environment)
    install(python, build_wheel(tmp_path), which, tmp_path)
    settings = variables(python, tmp_path)
    settings.pop("PYTHONDONTWRITEBYTECODE", None)  # container images set it: modules count
    before = megabytes(environment)
    if which == "newest":
        subprocess.run([python, "-m", "drivelab.core.prune"], check=True, env=settings)

    def drivelab(*arguments: str, cwd: Path = tmp_path) -> str:
        done = subprocess.run(
            ["drivelab", *arguments], cwd=cwd, env=settings, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout.replace("\N{NO-BREAK SPACE}", " ")

    assert "pts-iops" in drivelab("protocol", "list")
    drivelab("init", "studies")
    assert headline() in drivelab("run", "config/tutorial.yaml", cwd=tmp_path / "studies")
    assert (tmp_path / "studies/results/tutorial/report/index.html").stat().st_size > 0
    assert "op28" in drivelab("query", "SELECT drive FROM summary", "--results", "results/tutorial",
                              cwd=tmp_path / "studies")  # fmt: skip
    after = megabytes(environment)
    print(f"{which}: {before} MB as installed, {after} MB at the end")
    if which == "newest":
        (tmp_path / "folder").mkdir()
        assert "Random read" in drivelab("quick", "--time", "1min", "folder")
        assert after <= MOST_MB
