"""Run the drive tools (nvme, hdparm, sg3_utils, blkid) and return their output without judging it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.programs import packages, start
from drivelab.drives.node import inherited, refuse_stale

NO_ANSWER = 124
"""Status of a program that did not answer in time."""
_DYING_S = 1.0


@dataclass(frozen=True)
class Output:
    """The result of a program. The exit status proves nothing: hdparm exits 0 after a failed erase."""

    status: int
    stdout: str
    stderr: str

    @property
    def words(self) -> str:
        """The first line of output, standard error first, to quote in a message."""
        lines = [line.strip() for line in (self.stderr + "\n" + self.stdout).splitlines() if line.strip()]
        return lines[0] if lines else f"exit status {self.status}"


def run(program: str, *arguments: str, timeout_s: float = 60.0) -> Output:
    """Run a program without a shell; kill it, with status 124, if it does not answer in time.

    The program is also killed when this process ends; run a program that erases with `drivelab.drives.erasing` instead.
    Prefer to name a device by a descriptor of this process (`Node.path`), which the program inherits. Raises UserError
    if the program is not installed (naming its package), or if an argument is a stale node in /dev.
    """
    require(program, *arguments)
    process = start(
        [program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        process_group=0, pass_fds=inherited(arguments),
    )  # fmt: skip
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _kill(process)
        with suppress(subprocess.TimeoutExpired):  # a process that waits in the kernel ends only when the drive answers
            process.communicate(timeout=_DYING_S)
        return Output(NO_ANSWER, "", f"{program} did not answer within {timeout_s:.0f} s")
    except BaseException:
        _kill(process)
        raise
    return Output(process.returncode, stdout, stderr)


def require(program: str, *arguments: str) -> None:
    """Raise UserError if a program is not installed, or if one of its arguments is a stale node in /dev."""
    if shutil.which(program) is None:
        package = packages().get(program, program)
        raise UserError(f"{program} is not installed; run ./drivelab setup, or install the package {package}")
    for argument in arguments:
        if argument.startswith("/dev/"):
            refuse_stale(argument)


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill a program and its children; it is not reaped yet, so the process group is still its own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def read_json(program: str, *arguments: str) -> dict[str, Any] | None:
    """Return the JSON object that a program prints; None if it fails or prints none."""
    output = run(program, *arguments)
    try:
        value = json.loads(output.stdout)
    except ValueError:
        return None
    return value if output.status == 0 and isinstance(value, dict) else None
