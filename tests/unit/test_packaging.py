"""Locks, image, conda recipe and release: each list of dependencies or versions says the same as the others."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement

import drivelab
from drivelab.plan.places import SHIPPED

PROJECT = tomllib.loads((SHIPPED / "pyproject.toml").read_text())
CONDA_NAMES = {
    "duckdb": "python-duckdb", "matplotlib": "matplotlib-base", "seaborn": "seaborn-base",
    "snakemake": "snakemake-minimal",
}  # fmt: skip
ESSENTIAL = {"bash", "coreutils", "dash", "gzip", "tar"}
"""Packages that every Debian system has."""
NO_PYTHON = {"python", "fio", "c-compiler", "liburing"}
"""Requirements of the conda recipe that pip cannot install."""


def locked(name: str) -> dict[str, str]:
    """Return versions by package."""
    text = (SHIPPED / name).read_text()
    assert "--hash=sha256:" in text
    assert "://" not in text, "a lock names no index"
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))


def names(requirements: list[object]) -> set[str]:
    return {Requirement(text).name for text in requirements if isinstance(text, str)}


def test_users_get_no_tools_of_developers() -> None:
    users, developers = locked("requirements.txt"), locked("requirements-dev.txt")
    assert users.items() <= developers.items()
    assert names(PROJECT["project"]["dependencies"]) <= users.keys()
    tools = names(PROJECT["dependency-groups"]["dev"])
    assert tools <= developers.keys()
    assert not tools & users.keys()


def test_each_dependency_has_a_lower_bound_and_its_lock_keeps_the_bounds() -> None:
    versions = locked("requirements.txt")
    for text in PROJECT["project"]["dependencies"]:
        wanted = Requirement(text)
        assert [part.operator for part in wanted.specifier].count(">=") == 1, text
        assert wanted.specifier.contains(versions[wanted.name]), text


def test_image_has_the_debian_packages_of_the_set_up() -> None:
    script = (SHIPPED / "drivelab").read_text()
    rows = [line.split() for line in (SHIPPED / "scripts/drivelab/core/programs.txt").read_text().splitlines()]
    needed = {package for package, who, *_ in rows if who == "all"} - ESSENTIAL
    needed |= set(re.findall(r"echo ([a-z0-9-]+)$", script, re.MULTILINE)) - {"python3-dev"}  # for Python 3.14 only
    image = (SHIPPED / "packaging/Containerfile").read_text()
    (installed,) = re.findall(r"--no-install-recommends \\\n(.*?)&&", image, re.DOTALL)
    assert set(installed.replace("\\", "").split()) == needed
    for source in re.findall(r"-r (\S+)", image):
        assert (SHIPPED / source).exists()


def test_conda_recipe_has_the_dependencies_of_the_package() -> None:
    recipe = yaml.safe_load((SHIPPED / "packaging/conda/recipe.yaml").read_text())
    found = {name: specifier for name, _, specifier in (line.partition(" ") for line in recipe["requirements"]["run"])}
    for text in PROJECT["project"]["dependencies"]:
        wanted = Requirement(text)
        specifier = found.pop(CONDA_NAMES.get(wanted.name, wanted.name))
        assert set(filter(None, specifier.split(","))) == {str(part) for part in wanted.specifier}
    assert found.keys() == NO_PYTHON
    assert found["python"] == PROJECT["project"]["requires-python"]


def test_conda_recipe_builds_what_the_package_builds() -> None:
    recipe = yaml.safe_load((SHIPPED / "packaging/conda/recipe.yaml").read_text())
    commands = PROJECT["project"]["scripts"]
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {place}" for name, place in commands.items()]
    host = {name: specifier for name, _, specifier in (line.partition(" ") for line in recipe["requirements"]["host"])}
    assert host.pop("python") == PROJECT["project"]["requires-python"]
    assert {f"{name}{specifier}" for name, specifier in host.items()} == {"pip", *PROJECT["build-system"]["requires"]}


def test_release_has_one_version() -> None:
    recipe = yaml.safe_load((SHIPPED / "packaging/conda/recipe.yaml").read_text())
    citation = yaml.safe_load((SHIPPED / "CITATION.cff").read_text())
    changelog = (SHIPPED / "CHANGELOG.md").read_text()
    releases = re.findall(r"^## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)$", changelog, re.MULTILINE)
    assert (drivelab.__version__, str(citation["date-released"])) == releases[0]
    assert recipe["package"]["version"] == citation["version"] == drivelab.__version__


def test_slurm_extra_is_what_the_cluster_lock_has() -> None:
    extra = PROJECT["project"]["optional-dependencies"]["slurm"]
    assert extra == PROJECT["dependency-groups"]["cluster"]
    assert locked("requirements-cluster.txt").keys() == names(extra)


def test_hosted_checks_are_the_project_s() -> None:
    jobs = yaml.safe_load((SHIPPED / ".github/workflows/ci.yml").read_text())["jobs"]
    assert any(".ci/run" in step.get("run", "") for job in jobs.values() for step in job["steps"])


def test_script_is_valid_sh() -> None:
    subprocess.run(["sh", "-n", Path(SHIPPED, "drivelab")], check=True)
