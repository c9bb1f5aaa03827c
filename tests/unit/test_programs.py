"""Every program that drivelab starts is started in one of the places that decide how it ends."""

from __future__ import annotations

import ast
from pathlib import Path

import drivelab

SCRIPTS = Path(drivelab.__file__).parents[1]
STARTS = {
    "subprocess": {"Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"},
    "os": {"fork", "forkpty", "system", "popen", "posix_spawn", "posix_spawnp", "startfile"},
    "pty": {"fork", "spawn"},
    "multiprocessing": {"Process", "Pool", "get_context"},
    "concurrent.futures": {"ProcessPoolExecutor"},
}
ALLOWED = {
    "drivelab/parent.py": "the door: programs end with the process that started them",
    "drivelab/drives/erasing.py": "an erase runs to its end; the next command that wants the drive waits for it",
    "drivelab/trace/capturing/guardian.py": "the guardian outlives a killed capture to clear up after it, then ends",
    "drivelab/trace/capturing/command.py": "the traced command ends with its parent, and the guardian kills the rest "
    "of it; a shell in front would count as the application's time",
    "drivelab/explore/query.py": "a fork, which ends with its parent by drivelab.forks.end_with",
    "drivelab/virtual/daemon.py": "a virtual drive is left running; 'virtual stop' or the next start ends it",
    "applications/postgresql.py": "below a traced command: the guardian kills them",
    "applications/make_repository.py": "below a set-up command, which waits for them",
}
"""Files that start a program by themselves, each with the reason."""


def starts(source: str) -> list[str]:
    """Names of the calls, imported by whatever name, that start a process."""
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
        one
        for one in full
        for module, name in [one.rsplit(".", 1) if "." in one else ("", one)]
        if name in STARTS.get(module, ()) or (module == "os" and name.startswith(("exec", "spawn")))
    ]


def test_programs_are_started_in_the_allowed_places_only() -> None:
    files = {str(path.relative_to(SCRIPTS)): path.read_text() for path in SCRIPTS.rglob("*.py")}
    found = {name: calls for name, source in files.items() if (calls := starts(source))}
    assert found.keys() == ALLOWED.keys(), "start programs by drivelab.parent, or add the file with its reason"


def test_each_way_of_starting_a_program_is_seen() -> None:
    source = """
import os, subprocess as s
from subprocess import run as go, PIPE
from multiprocessing import Process
s.Popen([], stdout=PIPE); go([]); os.execv("x", []); Process(); os.fork(); os.path.join("a"); s.list2cmdline([])
"""
    assert sorted(starts(source)) == [
        "multiprocessing.Process", "os.execv", "os.fork", "subprocess.Popen", "subprocess.run",
    ]  # fmt: skip
