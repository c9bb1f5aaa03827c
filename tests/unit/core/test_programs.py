"""drivelab starts programs only in modules that decide how the programs end."""

from __future__ import annotations

import ast
import re
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
