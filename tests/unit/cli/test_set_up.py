"""The script `drivelab` in a checkout that its user cannot write to."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
NOBODY = 65534
PROGRAMS = "scripts/drivelab/core/programs.txt"
_INPUTS = ("pyproject.toml", "scripts/drivelab/native/a.c", "scripts/drivelab/native/a.h",
           "scripts/drivelab/native/replay/a.c", "scripts/drivelab/native/replay/a.h")  # fmt: skip


def digests(root: Path, *names: str) -> str:
    """Return digests in the format of sha256sum."""
    return "".join(f"{hashlib.sha256((root / name).read_bytes()).hexdigest()}  {name}\n" for name in names)


@pytest.fixture
def checkout() -> Iterator[Path]:
    """A set-up checkout, readable by others, in which `drivelab` prints its arguments."""
    root = Path(tempfile.mkdtemp())
    try:
        for name in (*_INPUTS, "requirements.txt", ".venv/bin/drivelab", PROGRAMS, "tools/tiers.py"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(name)
        shutil.copy(ROOT / "drivelab", root)
        shutil.copy(ROOT / PROGRAMS, root / PROGRAMS)
        (root / ".venv/bin/drivelab").write_text('#!/bin/sh\necho "ran: $*"\n')
        (root / ".venv/bin/drivelab").chmod(0o755)
        (root / "tools/tiers.py").write_text('echo "tests: $*"\n')
        (root / ".venv/bin/python").symlink_to(shutil.which("sh") or "/bin/sh")
        interpreter = os.path.realpath(root / ".venv/bin/python")
        stamp = f"{root}\n{interpreter}\n{digests(root, 'requirements.txt')}"
        (root / ".venv/environment.stamp").write_text(stamp)
        (root / ".venv/project.stamp").write_text(digests(root, *_INPUTS))
        (root / ".venv.lock").touch()
        yield root
    finally:
        for path in (root, *root.rglob("*")):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o755)
        shutil.rmtree(root)


def run(root: Path, *arguments: str) -> tuple[int, str, str]:
    """Run ./drivelab as a user who can read the checkout but not write to it."""
    for path in (*root.rglob("*"), root):
        if not path.is_symlink():
            path.chmod(0o555 if path.is_dir() or os.access(path, os.X_OK) else 0o444)
    command = [str(root / "drivelab"), *arguments]
    if os.geteuid() == 0:
        command = ["setpriv", f"--reuid={NOBODY}", "--clear-groups", *command]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_current_read_only_environment_works(checkout: Path) -> None:
    assert run(checkout, "study", "check") == (0, "ran: study check\n", "")
    assert run(checkout, "setup") == (0, "", "drivelab: set up already\n")


@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        (
            ".venv/environment.stamp",
            "the Python environment in .venv is missing, out of date or belongs to another user",
        ),
        (".venv/project.stamp", "the project has changed since it was set up"),
        (".venv", "the Python environment in .venv is missing, out of date or belongs to another user"),
    ],
)
@pytest.mark.parametrize("arguments", [("study", "check"), ("setup",), ("setup", "cluster")])
def test_impossible_set_up_gives_reason_and_remedy(
    checkout: Path, missing: str, reason: str, arguments: tuple[str, ...]
) -> None:
    place = checkout / missing
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink()
    status, out, err = run(checkout, *arguments)
    assert (status, out) == (1, "")
    assert err.startswith(f"drivelab: {checkout} is not writable for user ")
    assert err.endswith(
        f"and drivelab must be set up there: {reason}. Run './drivelab setup' as the owner of the folder, or copy the "
        "project to a folder that you own.\n"
    )
    assert len(err.splitlines()) == 1


def test_tests_need_the_tools_of_developers(checkout: Path) -> None:
    (checkout / "requirements-dev.txt").write_text("requirements-dev.txt")
    status, out, err = run(checkout, "test", "long")
    assert (status, out) == (1, "")
    assert err.endswith(
        "and drivelab must be set up there: the packages for tests or for a cluster are missing or out of date. Run "
        "'./drivelab setup' as the owner of the folder, or copy the project to a folder that you own.\n"
    )
    checkout.chmod(0o755)
    (checkout / ".venv").chmod(0o755)
    (checkout / ".venv/dev.stamp").write_text(digests(checkout, "requirements-dev.txt", PROGRAMS))
    assert run(checkout, "test", "long") == (0, "tests: long\n", "")
    assert run(checkout, "setup", "dev") == (
        0,
        "",
        "drivelab: set up already\ndrivelab: set up for development already\n",
    )


def test_what_set_up_imports_exists() -> None:
    statements = re.findall(r"import_all '(.*?)'", (ROOT / "drivelab").read_text(), re.DOTALL)
    nodes = [node for statement in statements for node in ast.walk(ast.parse(statement))]
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    modules |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    assert len(modules) > 3
    assert not {module for module in modules if find_spec(module) is None}
