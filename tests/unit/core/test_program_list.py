"""The list of programs, from which set-up installs packages, has every program that the library and the tests start."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from drivelab.core import programs
from drivelab.plan.places import SHIPPED

LIST = Path(programs.__file__).with_name("programs.txt")
STARTERS = {"run", "start", "launch", "run_program", "read_json", "require", "which", "Popen", "check_output",
            "checked", "program", "Command"}  # fmt: skip
"""Functions that start or find a program whose name is in their first argument."""
MAY_START = re.compile(rf"\b({'|'.join(STARTERS)})\(|\b(command|argv)\b")
"""Other modules need not be parsed, which takes long."""
MODULES = {"subprocess", "shutil", "programs", "tools", "host", "drivelab.core.programs", "drivelab.drives.tools"}
"""Modules of these functions; in other modules, functions of the same names do something else."""
OTHERS = {"checked", "program", "Command"}
"""Functions of drivelab's that have one meaning everywhere."""
OWN = {"drivelab"}
ELSEWHERE = {"emulated", "cluster", "browser", "benchmarks"}
"""Folders of tests that install more, or that CI does not run."""


def listed() -> dict[str, str]:
    """Return who installs each program."""
    rows = [line.split() for line in LIST.read_text().splitlines() if not line.startswith("#")]
    return {program: who for _, who, *names in rows for program in names}


@functools.cache
def started(path: Path) -> frozenset[str]:
    """Return the programs that a module starts or looks for by a name in its text."""
    return frozenset(_started(path))


def _started(path: Path) -> Iterator[str]:
    if not MAY_START.search(text := path.read_text()):
        return
    tree = ast.parse(text)
    imported = {
        alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module in MODULES
        for alias in node.names
    }  # fmt: skip
    in_guest = path.parent.name == "guest"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            module, name = called(node.func)
            is_list = isinstance(node.args[0], ast.List | ast.Tuple)
            known = module in MODULES or name in imported or name in OTHERS or is_list or in_guest
            if name in STARTERS and known:
                yield from first_word(node.args[0])
        elif isinstance(node, ast.Assign) and "tests" not in path.parts:
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if {"command", "argv"} & set(names):
                yield from first_word(node.value)


def called(function: ast.expr) -> tuple[str, str]:
    """Return module and name of a called function."""
    if isinstance(function, ast.Attribute):
        return (function.value.id if isinstance(function.value, ast.Name) else "", function.attr)
    return "", function.id if isinstance(function, ast.Name) else ""


def first_word(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.List | ast.Tuple) and node.elts:
        node = node.elts[0]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


MODULE_FILES = [
    path for folder in ("scripts", "tests") for path in sorted((SHIPPED / folder).rglob("*.py"))
    if "benchmarks" not in path.parts
]  # fmt: skip


def test_every_started_program_is_listed() -> None:
    lacks = {(name, str(path)) for path in MODULE_FILES for name in started(path) if name not in listed().keys() | OWN}
    assert not lacks


def test_set_up_installs_what_drivelab_test_starts() -> None:
    who = listed()
    files = [path for path in MODULE_FILES if "tests" in path.parts and not ELSEWHERE & set(path.parts)]
    started_by_tests = {name: path for path in files for name in started(path) if name in who}
    assert {"sfdisk", "mkfs.btrfs", "fio"} <= started_by_tests.keys(), "the search finds what is known"
    assert not {name: path for name, path in started_by_tests.items() if who[name] not in ("all", "tests")}


def test_no_listed_program_is_unused() -> None:
    text = "\n".join(path.read_text() for path in MODULE_FILES) + (SHIPPED / "drivelab").read_text()
    assert not [name for name in listed() if name not in text]


@pytest.mark.parametrize("application", yaml.safe_load((SHIPPED / "config/applications.yaml").read_text()).items(),
                         ids=lambda pair: pair[0])  # fmt: skip
def test_applications_name_the_same_packages(application: tuple[str, dict[str, dict[str, str]]]) -> None:
    required = application[1].get("requires", {})
    known = programs.packages()
    assert {name: known[name] for name in required if name in known}.items() <= required.items()
