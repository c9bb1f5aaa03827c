"""Processes that capture tests start and wait for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from drivelab.plan.places import ROOT

MIB = 1 << 20


def dd(device: str, count: int = 50) -> list[str]:
    return ["dd", "if=/dev/zero", f"of={device}", "bs=4k", f"count={count}", "oflag=direct", "seek=100"]


def background(code: str, stdout: int | None = None) -> subprocess.Popen[bytes]:
    """Run Python code in a separate process, which handles signals like the drivelab command."""
    code = f"from drivelab.core.termination import end_in_order; end_in_order()\n{code}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts")}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=stdout)


def running(*arguments: str) -> list[int]:
    """Return the processes that have all these words in their command line."""
    pids: list[int] = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if all(argument.encode() in words for argument in arguments):
            pids.append(int(path.name))
    return pids
