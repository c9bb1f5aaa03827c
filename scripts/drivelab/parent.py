"""Start programs that end with this process, however this process ends."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_SETPRIV, _SHELL = (shutil.which(name, path=os.defpath) or name for name in ("setpriv", "sh"))
"""The system's programs, whatever PATH says."""
_STILL_THERE = 'test "$PPID" = "$0" && exec "$@"'


def ending_with_parent(signal: str) -> list[str]:
    """Return a command prefix: the command gets `signal` (`TERM`, `INT` or `KILL`) when this process dies.

    setpriv(1) requests the signal from the kernel (prctl(2), PR_SET_PDEATHSIG; exec keeps it, fork clears it). That
    costs less than running Python code between fork and exec. The shell then detects a parent that has died already:
    without it, the command would end only with its new parent. The kernel sends the signal when the *thread* that
    started the command ends, so that thread has to wait for the command.
    """
    return [_SETPRIV, "--pdeathsig", signal, _SHELL, "-c", _STILL_THERE, str(os.getpid())]


def shell_function(program: str, signal: str) -> str:
    """Return a shell function with the name of a program: it runs the program with `ending_with_parent`.

    The program replaces the shell, so the function has to be the last command of its shell. Braces are doubled, for
    `shell.prefix` of Snakemake.
    """
    return f'{program}() {{{{ exec {shlex.join(ending_with_parent(signal))} {program} "$@"; }}}};'


def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and return its status, and its output as text.

    The command is killed when this process ends. `options` are those of subprocess.run; by default the command gets no
    input and its output is captured. Raises FileNotFoundError for a missing program, and what subprocess.run raises.
    """
    _require(command[0], **options)
    settings: dict[str, Any] = {"encoding": "utf-8", "errors": "replace", "check": False} | options
    if "input" not in settings:
        settings.setdefault("stdin", subprocess.DEVNULL)
    if "stdout" not in settings:
        settings["capture_output"] = True
    return subprocess.run([*ending_with_parent("KILL"), *command], **settings)


def start(command: Sequence[str], *, signal: str = "KILL", **options: Any) -> subprocess.Popen[Any]:
    """Start a command without input; it gets `signal` (see `ending_with_parent`) when this process ends.

    `options` are those of subprocess.Popen. Raises FileNotFoundError for a missing program.
    """
    _require(command[0], **options)
    settings: dict[str, Any] = {"stdin": subprocess.DEVNULL} | options
    return subprocess.Popen([*ending_with_parent(signal), *command], **settings)


def _require(program: str, *, cwd: Path | None = None, env: Mapping[str, str] | None = None, **_: Any) -> None:
    """Raise FileNotFoundError for a missing program, as subprocess does, which only checks setpriv here."""
    path = Path(cwd or "", program) if os.sep in program else program
    if shutil.which(path, path=(env or os.environ).get("PATH")) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
