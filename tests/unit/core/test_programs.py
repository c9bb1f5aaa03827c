"""Programs end with the process that started them, only some modules start any, and set-up knows all of them."""

from __future__ import annotations

import ast
import functools
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import drivelab
from drivelab.core import programs
from drivelab.core.programs import ending_with_parent, run_program
from drivelab.plan.places import SHIPPED

START = """
import os, subprocess, sys
from drivelab.core.programs import ending_with_parent
child = subprocess.Popen([*ending_with_parent("KILL"), "sleep", "600"])
print(child.pid, flush=True)
sys.stdin.read()
"""


def test_arguments_are_passed_unchanged() -> None:
    command = [*ending_with_parent("TERM"), "printf", "%s|", "a b", "$PPID", '"', "*", ""]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == 'a b|$PPID|"|*||'


def test_command_ends_with_a_killed_parent() -> None:
    parent = subprocess.Popen([sys.executable, "-c", START], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = os.pidfd_open(int(parent.stdout.readline()))
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    assert select.select([child], [], [], 60)[0], "it still runs"
    os.close(child)


def test_command_does_not_start_without_its_parent() -> None:
    """Otherwise it would end only with the process that adopts it."""
    command = ending_with_parent("TERM")
    command[-1] = str(os.getppid())  # as if the parent that started it had been another process
    done = subprocess.run([*command, "echo", "started"], capture_output=True, text=True, check=False)
    assert (done.returncode != 0, done.stdout) == (True, "")


PATIENT = ["sh", "-c", "trap 'echo bye; exit 128' INT; echo ready; while :; do sleep 0.02; done"]


def is_ready(folder: Path) -> bool:
    return (folder / "stdout").read_text() == "ready\n"


def test_program_is_interrupted_once_and_ends(tmp_path: Path) -> None:
    answers = []

    def until() -> bool:
        answers.append(is_ready(tmp_path))
        return answers[-1]

    run_program(PATIENT, tmp_path, lambda elapsed_s: None, until=until, look_s=0.05)
    assert answers[-1]
    assert sum(answers) == 1, "the rule is not called again after it is true"
    assert (tmp_path / "stdout").read_text() == "ready\nbye\n"
    assert (tmp_path / "exit_code").read_text() == "128\n"


def test_exception_of_the_rule_ends_the_program(tmp_path: Path) -> None:
    def until() -> bool:
        if is_ready(tmp_path):
            raise RuntimeError("damaged")
        return False

    with pytest.raises(RuntimeError, match="damaged"):
        run_program(PATIENT, tmp_path, lambda elapsed_s: None, until=until, look_s=0.05)
    assert (tmp_path / "stdout").read_text() == "ready\n"
    assert not (tmp_path / "exit_code").exists()


def test_ticks_are_independent_of_checks(tmp_path: Path) -> None:
    looks, ticks = [0], []

    def until() -> bool:
        looks[0] += 1
        return looks[0] == 9

    def tick(elapsed_s: float) -> None:
        ticks.append(looks[0])

    run_program(["sleep", "60"], tmp_path, tick, until=until, look_s=0.25)
    assert ticks == [4, 8]


SCRIPTS = Path(drivelab.__file__).parents[1]
STARTS = {
    "subprocess": {"Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"},
    "os": {"fork", "forkpty", "system", "popen", "posix_spawn", "posix_spawnp", "startfile"},
    "pty": {"fork", "spawn"},
    "multiprocessing": {"Process", "Pool", "get_context"},
    "concurrent.futures": {"ProcessPoolExecutor"},
}
ALLOWED = {
    "drivelab/core/programs.py": "the normal way: programs end with the process that started them",
    "drivelab/drives/erasing.py": "an erase runs to its end; the next command that uses the drive waits for it",
    "drivelab/trace/capturing/guardian.py": "the guardian outlives a killed capture, cleans up and ends",
    "drivelab/explore/query.py": "a fork, which ends with its parent by drivelab.core.termination.end_with",
    "drivelab/virtual/daemon.py": "a virtual drive keeps running; 'virtual stop' or the next start ends it",
    "applications/postgresql.py": "below a traced command: the guardian kills them",
    "applications/make_repository.py": "below a set-up command, which waits for them",
}
"""Files that start programs themselves, each with the reason."""


def starts(source: str) -> list[str]:
    """Return the calls that start a process, whatever name they are imported by."""
    words = set(re.findall(r"\w+", source))
    calls_of_os = re.search(r"\bos\b", source) and re.search(r"\b(exec|spawn)", source)
    known = any(module.partition(".")[0] in words and names & words for module, names in STARTS.items())
    if not known and not calls_of_os:
        return []  # without parsing it, which takes long
    tree = ast.parse(source)
    modules: dict[str, str] = {}
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module in STARTS:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    full = [names.get(call.id, "") for call in calls if isinstance(call, ast.Name)]
    for call in calls:
        if isinstance(call, ast.Attribute):
            module, _, name = ast.unparse(call).rpartition(".")
            full.append(f"{modules.get(module, '')}.{name}")
    return [
        call_name
        for call_name in full
        for module, name in [call_name.rsplit(".", 1) if "." in call_name else ("", call_name)]
        if name in STARTS.get(module, ()) or (module == "os" and name.startswith(("exec", "spawn")))
    ]


def test_programs_are_started_only_in_allowed_files() -> None:
    files = {str(path.relative_to(SCRIPTS)): path.read_text() for path in SCRIPTS.rglob("*.py")}
    result = {name: calls for name, source in files.items() if (calls := starts(source))}
    assert result.keys() == ALLOWED.keys(), "start programs by drivelab.core.programs, or add the file with its reason"


def test_every_way_to_start_a_program_is_detected() -> None:
    source = """
import os, subprocess as s
from subprocess import run as go, PIPE
from multiprocessing import Process
s.Popen([], stdout=PIPE); go([]); os.execv("x", []); Process(); os.fork(); os.path.join("a"); s.list2cmdline([])
"""
    assert sorted(starts(source)) == [
        "multiprocessing.Process", "os.execv", "os.fork", "subprocess.Popen", "subprocess.run",
    ]  # fmt: skip


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
ELSEWHERE = {"emulated", "cluster", "browser"}
"""Folders of tests that install more, or that CI does not run."""


def listed() -> dict[str, str]:
    """Return who installs each program."""
    rows = [line.split() for line in LIST.read_text().splitlines() if not line.startswith("#")]
    return {program: who for _, who, *names in rows for program in names}


@functools.cache
def programs_of(path: Path) -> frozenset[str]:
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
]  # fmt: skip


def test_every_started_program_is_listed() -> None:
    lacks = {
        (name, str(path)) for path in MODULE_FILES for name in programs_of(path) if name not in listed().keys() | OWN
    }
    assert not lacks


def test_set_up_installs_what_drivelab_test_starts() -> None:
    who = listed()
    files = [path for path in MODULE_FILES if "tests" in path.parts and not ELSEWHERE & set(path.parts)]
    started_by_tests = {name: path for path in files for name in programs_of(path) if name in who}
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
