"""Runs the programs that know drives better than the kernel does (nvme, hdparm, sg3_utils, blkid); judges nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from drivelab.drives.node import inherited, refuse_stale
from drivelab.errors import UserError
from drivelab.parent import start

PACKAGES = {
    "nvme": "nvme-cli",
    "hdparm": "hdparm",
    "blkid": "util-linux",
    "dd": "coreutils",
    "blkdiscard": "util-linux",
    "wipefs": "util-linux",
    "partx": "util-linux",
    "smartctl": "smartmontools",
}
"""Debian package of a program; those that begin with sg_ are in sg3-utils."""
NO_ANSWER = 124
"""Status of a program that did not answer in time."""
_DYING_S = 1.0


@dataclass(frozen=True)
class Output:
    """What a program left. Its exit status proves nothing: hdparm exits 0 after a failed erase."""

    status: int
    stdout: str
    stderr: str

    @property
    def words(self) -> str:
        """The first line of complaint, for a sentence."""
        lines = [line.strip() for line in (self.stderr + "\n" + self.stdout).splitlines() if line.strip()]
        return lines[0] if lines else f"exit status {self.status}"


def run(program: str, *arguments: str, timeout_s: float = 60.0) -> Output:
    """Run a program without a shell; a program that does not answer in time is killed and has status 124.

    It is killed when this process ends. A program that erases runs by `drivelab.drives.erasing` instead. Raises
    UserError naming the package when the program is not installed, and for a node in /dev with another device's number.
    A device is best named by a descriptor of this process (`Node.path`), which the program inherits.
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
        with suppress(subprocess.TimeoutExpired):  # what waits for a drive in the kernel ends only when that answers
            process.communicate(timeout=_DYING_S)
        return Output(NO_ANSWER, "", f"{program} did not answer within {timeout_s:.0f} s")
    except BaseException:
        _kill(process)
        raise
    return Output(process.returncode, stdout, stderr)


def require(program: str, *arguments: str) -> None:
    """Raise UserError when a program is not installed, or one of its arguments is a stale node in /dev."""
    if shutil.which(program) is None:
        package = PACKAGES.get(program, "sg3-utils" if program.startswith("sg_") else program)
        raise UserError(f"{program} is not installed; run ./drivelab setup, or install the package {package}")
    for argument in arguments:
        if argument.startswith("/dev/"):
            refuse_stale(argument)


def _kill(process: subprocess.Popen[str]) -> None:
    """With all that it has started; it is not reaped yet, so the group is its own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def read_json(program: str, *arguments: str) -> dict[str, Any] | None:
    """The JSON object that a program prints; None where it fails or prints none."""
    output = run(program, *arguments)
    try:
        value = json.loads(output.stdout)
    except ValueError:
        return None
    return value if output.status == 0 and isinstance(value, dict) else None
