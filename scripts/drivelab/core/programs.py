"""Run a program that does I/O on a drive, and end its whole process group if needed."""

from __future__ import annotations

import errno
import functools
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.core.errors import CellFailed

_SETPRIV, _SHELL = (shutil.which(name, path=os.defpath) or name for name in ("setpriv", "sh"))
"""The system's programs, whatever PATH says."""
_STILL_THERE = 'test "$PPID" = "$0" && exec "$@"'


@functools.cache
def packages() -> dict[str, str]:
    """Return the Debian package of each program that drivelab and its tests start."""
    lines = Path(__file__).with_name("programs.txt").read_text().splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    return {program: package for package, _, *programs in rows for program in programs}


def python(*arguments: str) -> list[str]:
    """Return a command of this Python, which imports no file of the current folder.

    With `-m` and `-c`, Python looks for modules in the current folder first. Another user may have put a `json.py`
    there. `-P` leaves the folder out.
    """
    return [sys.executable, "-P", *arguments]


SAFE_PATH = {"PYTHONSAFEPATH": "drivelab"}
"""Variable that does the same as `python` for the Pythons that a child process starts, such as Snakemake's jobs."""


def keep_safe_path_private() -> None:
    """Remove SAFE_PATH from this process's environment.

    drivelab's own programs need it no longer, and a measured application may be a Python program that imports files
    next to it. A value that the user has set stays.
    """
    if os.environ.items() >= SAFE_PATH.items():
        del os.environ["PYTHONSAFEPATH"]


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


TICK_S = 1.0
"""Seconds between two checks of a running program."""
_KILL_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class Timing:
    """Start and end of a process, seconds of the monotonic clock."""

    started_s: float
    ended_s: float
    prepared: bool = False
    """Whether the process waited already, and `started_s` is its release."""


Tick = Callable[[float], None]


def run_program(
    command: Sequence[str],
    directory: Path,
    on_tick: Tick,
    on_hang: Callable[[], None] = lambda: None,
    patience_s: float = 0.0,
    *,
    inherited: Sequence[int] = (),
    until: Callable[[], bool] | None = None,
    look_s: float = TICK_S,
    begin: Callable[[], tuple[subprocess.Popen[bytes], float]] | None = None,
) -> Timing:
    """Run a program in `directory`, with its results in the files `stdout`, `stderr` and `exit_code` there.

    `on_tick` is called about once a second with the seconds since the start. An exception from it ends the process
    group and propagates. `until` is called every `look_s` seconds; when it returns True, the program gets SIGINT, to
    end cleanly. `on_hang` is called if the program survives SIGKILL: a process in uninterruptible sleep ends only when
    the drive answers. On KeyboardInterrupt the program gets SIGINT too, and `patience_s` seconds to end cleanly. The
    program inherits the descriptors `inherited`. The exit status is not checked here. If this process is killed, the
    program is killed too.

    `begin` returns a program that `launch` started in this directory before, and the time at which its work begins.
    """
    if begin is not None:
        process, started_s = begin()
    else:
        started_s = time.monotonic()
        process = launch(command, directory, inherited)
    try:
        ended_s = _wait(process, started_s, on_tick, until, min(look_s, TICK_S))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and patience_s:
            _interrupt(process, patience_s)
        _kill_group(process, Path(command[0]).name, on_hang)
        raise
    (directory / "exit_code").write_text(f"{process.returncode}\n")
    return Timing(started_s, ended_s, prepared=begin is not None)


def launch(
    command: Sequence[str], directory: Path, inherited: Sequence[int] = (), environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a program in `directory`, in its own group, with the files `stdout` and `stderr` there.

    `environment` is added to that of this process. If this process is killed, the program is killed too.
    """
    with (directory / "stdout").open("wb") as out, (directory / "stderr").open("wb") as err:
        return start(command, cwd=directory, stdout=out, stderr=err, process_group=0, pass_fds=inherited,
                     env={**os.environ, **(environment or {})})  # fmt: skip


def _wait(
    process: subprocess.Popen[bytes],
    started_s: float,
    on_tick: Tick,
    until: Callable[[], bool] | None,
    look_s: float,
) -> float:
    """Wait on a pidfd: Popen.wait polls with a delay of up to 50 ms, which would be a gap between cells."""
    descriptor = os.pidfd_open(process.pid)
    looks_a_tick = max(round(TICK_S / look_s), 1)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        looks = 0
        while not poll.poll(1000 * look_s):
            looks += 1
            if until is not None and until():
                until = None
                os.killpg(process.pid, signal.SIGINT)  # not reaped yet, so its group exists
            if looks % looks_a_tick == 0:
                on_tick(time.monotonic() - started_s)
        ended_s = time.monotonic()
        process.wait()
        return ended_s
    finally:
        os.close(descriptor)


def _interrupt(process: subprocess.Popen[bytes], patience_s: float) -> None:
    """Interrupt the group and wait; a second KeyboardInterrupt propagates, and its handler kills the group."""
    with suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGINT)
        process.wait(timeout=patience_s)


def _kill_group(process: subprocess.Popen[bytes], name: str, on_hang: Callable[[], None]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    for last_resort in (on_hang, None):
        try:
            process.wait(timeout=_KILL_TIMEOUT_S)
            return
        except subprocess.TimeoutExpired:
            if last_resort is not None:
                last_resort()
    raise CellFailed(f"{name} (process {process.pid}) cannot be killed while the drive hangs")


IPC_LOCK = 14
"""Lock memory beyond RLIMIT_MEMLOCK."""
SYS_NICE = 23
"""Leave the idle class of the scheduler (sched(7))."""


@functools.cache
def has(capability: int) -> bool:
    """Return whether this process has a capability, by its number in linux/capability.h, in effect."""
    status = Path("/proc/self/status").read_text()
    effective = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) >> capability & 1)


def stat_fields(pid: int) -> list[str]:
    """Return a process's fields from its state on (proc_pid_stat(5)): field N of the page is at N - 3.

    Raises FileNotFoundError or ProcessLookupError if it has ended.
    """
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def process_state(pid: int) -> tuple[str, int]:
    """Return a process's state letter and start in ticks since boot; ("X", -1) if it has ended."""
    try:
        fields = stat_fields(pid)
    except (FileNotFoundError, ProcessLookupError):  # a process that this user may not see (hidepid=1) may run
        return "X", -1
    return ("X", -1) if fields[0] in "ZX" else (fields[0], int(fields[19]))
