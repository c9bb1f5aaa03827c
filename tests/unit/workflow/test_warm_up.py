"""The process that forks for the scripts of recordings has done what each of them would repeat."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from imports import modules_after

from drivelab.workflow import warm_up

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = ("tables", "figures")
"""Scripts that run once or more for each recording."""


def imported_by(script: str) -> set[str]:
    tree = ast.parse((ROOT / f"scripts/{script}.py").read_text())
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return {f"{node.module}.{alias.name}" for node in nodes for alias in node.names} | {str(n.module) for n in nodes}


SERVER = (
    "from importlib import import_module",
    "from drivelab.workflow.load import IMPORTS",
    "[import_module(name) for name in IMPORTS]",
)
"""What the server does before the first script, without the warm-up."""
WARM = ("from drivelab.workflow import warm_up", "warm_up.warm_up()")


@pytest.fixture(scope="module")
def modules() -> set[str]:
    return modules_after(*SERVER, *WARM)


@pytest.mark.parametrize("script", SCRIPTS)
def test_server_has_the_modules_of_a_script(modules: set[str], script: str) -> None:
    existing = {name for name in imported_by(script) if is_module(name)}
    assert existing
    assert existing <= modules


def is_module(name: str) -> bool:
    base = ROOT.joinpath("scripts", *name.split("."))
    return base.with_suffix(".py").exists() or (base / "__init__.py").exists()


def test_a_second_use_imports_nothing_more(modules: set[str]) -> None:
    assert modules_after(*SERVER, *WARM, "warm_up.warm_up()") == modules


def test_warm_up_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    warm_up.warm_up()
    assert list(tmp_path.iterdir()) == []
