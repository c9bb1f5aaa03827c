"""Python that drivelab starts imports nothing from the current folder, which another user may have filled."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivelab.core import programs
from drivelab.plan.places import MARKER

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ("drivelab", "packaging/Containerfile", "packaging/conda/recipe.yaml")
"""Files that are not Python and start it."""
PLANTED = ("argparse", "contextlib", "csv", "duckdb", "json", "numpy", "pandas", "pyarrow", "snakemake", "subprocess",
           "tempfile", "yaml")  # fmt: skip


def _places(word: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield the nodes of all modules that have a word."""
    for folder in ("scripts", "workflow", "tools"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if word not in (text := path.read_text()):
                continue
            tree = ast.parse(text)
            for parent in ast.walk(tree):
                for child in ast.iter_child_nodes(parent):
                    child.parent = parent  # type: ignore[attr-defined]
            for node in ast.walk(tree):
                yield str(path.relative_to(ROOT)), node


def _is_folder(node: ast.AST) -> bool:
    """Return whether the interpreter's path is only the argument of Path, for its folder."""
    call = node.parent  # type: ignore[attr-defined]
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Path"


def test_every_start_of_python_is_by_one_function() -> None:
    """The rest is the placeholder {python}, which `applications.resolve` replaces."""
    starts = [
        place
        for place, node in _places("executable")
        if isinstance(node, ast.Attribute) and node.attr == "executable" and not _is_folder(node)
    ]
    assert sorted(starts) == ["scripts/drivelab/core/programs.py", "scripts/drivelab/trace/capturing/applications.py"]
    named = [
        place
        for place, node in _places("python")
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if re.fullmatch(r".*/python[\d.]*|python[\d.]+", node.value)
    ]
    assert named == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_start_in_a_shell_is_isolated(name: str) -> None:
    starts = re.findall(r'(?:python3?|\$python)"? (-\w)', (ROOT / name).read_text())
    assert "-P" in starts
    assert set(starts) <= {"-P", "-V"}


def test_workflow_files_start_no_python() -> None:
    for path in (ROOT / "Snakefile", *sorted((ROOT / "workflow").rglob("*.smk"))):
        assert not re.search(r"\bpython3?\b|sys\.executable", path.read_text()), path


def test_a_measured_application_does_not_inherit_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be a Python program that imports files next to it."""
    monkeypatch.setenv("PYTHONSAFEPATH", programs.SAFE_PATH["PYTHONSAFEPATH"])
    programs.keep_safe_path_private()
    assert "PYTHONSAFEPATH" not in os.environ
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    programs.keep_safe_path_private()
    assert os.environ["PYTHONSAFEPATH"] == "1"


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A folder with modules of common names, which leave a file `NAME.ran` when something imports them."""
    for name in PLANTED:
        (tmp_path / f"{name}.py").write_text(
            "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\nraise SystemExit('planted')\n"
        )
    return tmp_path


def _ran(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.ran"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["-c", "import contextlib, json, subprocess, yaml"],
        ["-m", "drivelab.native"],
        ["-m", "snakemake", "--version"],
        ["-m", "pytest", "--version"],
    ],
    ids=lambda arguments: arguments[1],
)
def test_planted_modules_are_not_imported(planted: Path, arguments: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(
        programs.python(*arguments), cwd=planted, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, _ran(planted)) == (0, []), done.stderr


@pytest.mark.parametrize("arguments", [["drives"], ["trace", "list"]], ids=" ".join)
def test_commands_in_a_folder_with_planted_modules(planted: Path, arguments: list[str]) -> None:
    """The console script of the environment, as ./drivelab starts it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    command = [str(Path(sys.executable).with_name("drivelab")), *arguments]
    done = subprocess.run(command, cwd=planted, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, _ran(planted)) == (0, []), done.stderr


def test_the_test_plants_what_would_run(planted: Path) -> None:
    """Without -P the planted module runs: the tests above can fail."""
    subprocess.run([sys.executable, "-c", "import json"], cwd=planted, capture_output=True, check=False)
    assert _ran(planted) == ["json.ran"]
    assert json.__file__
    assert not (planted / MARKER).exists()
