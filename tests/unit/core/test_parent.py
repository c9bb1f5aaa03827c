"""A process ends with the process that started it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

from drivelab.core.programs import ending_with_parent

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
