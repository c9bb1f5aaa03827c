"""Run programs that erase a drive to their end; the next command on the drive waits for them.

A drive finishes an erase even if the program is killed, and the kernel finishes a discard. Killing the program would
only hide that the drive is still busy. Each program has a lock file in the run directory, named after the drive and
its attachment (`diskseq`). The program inherits the lock (flock(2)). So the lock lasts as long as the program, even if
the stage is killed.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from drivelab.core.errors import UserError
from drivelab.core.private import make_private, run_directory
from drivelab.drives import sysfs, tools
from drivelab.drives.node import Node, inherited
from drivelab.drives.tools import NO_ANSWER, Output


def run(name: str, program: str, *arguments: str, timeout_s: float = 60.0) -> Output:
    """Run a program that erases the drive with kernel name `name`; never kill the program.

    The program has its own session, so Ctrl-C and a closed terminal do not reach it. An interrupt is raised at once
    and leaves the program running. After `timeout_s` the status is 124, and the program also keeps running.

    Raises UserError if the program is not installed, or if the run directory is not writable.
    """
    tools.require(program, *arguments)
    command = [program, *arguments]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:  # a pipe would break with this process
        lock = _locked(name)
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
                pass_fds=[lock, *inherited(arguments)],
            )  # fmt: skip
            _note(lock, {"drive": name, "command": command, "pid": process.pid, "started_s": time.time()})
        finally:
            os.close(lock)
        try:
            status = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return Output(NO_ANSWER, "", f"{program} did not answer within {timeout_s:.0f} s and is still running")
        _path(name).unlink(missing_ok=True)
        return Output(status, _text(out.fileno()), _text(err.fileno()))


def wait_until_ended(node: Node) -> None:
    """Wait for a program that still erases the drive after its stage was killed, and print a notice.

    Returns at once if no such program runs. The caller holds the drive's lock, or has seen that no process holds it.
    """
    path = _path(node.name, node.diskseq)
    while (descriptor := _opened(path)) is not None:
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print(_notice(node.name, _text(descriptor)), flush=True)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                # Another command may also have waited, and may have started its own erase with a new lock file.
                if os.path.samestat(path.stat(), os.fstat(descriptor)):
                    path.unlink()
        finally:
            os.close(descriptor)


def _opened(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # no such file, or the file and the drive belong to another user
        return None


def _path(name: str, diskseq: str | None = None) -> Path:
    return run_directory() / "erasing" / f"{name}-{diskseq or sysfs.diskseq(name)}.json"


def _locked(name: str) -> int:
    """Return the descriptor of the empty, locked lock file; the caller holds the drive, so no other process writes."""
    path = _path(name)
    try:
        make_private(path.parent)
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UserError(
            f"drive {name} was not erased: cannot write {path} ({error.strerror}). Other commands need this file "
            "to wait for the erase. Run as root, or set DRIVELAB_RUN_DIR to a folder that you can write to."
        ) from None
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def _note(lock: int, facts: dict[str, object]) -> None:
    os.pwrite(lock, json.dumps(facts).encode(), 0)


def _notice(name: str, text: str) -> str:
    """Return the notice; `text` is empty if the stage was killed right after it started the program."""
    facts = json.loads(text) if text else {}
    program = f"'{shlex.join(facts['command'])}' (process {facts['pid']})" if facts else "a program"
    return (
        f"drive {name}: {program} is still erasing the drive. The stage that started it was killed, and an erase "
        "cannot be stopped. drivelab waits until it ends."
    )


def _text(descriptor: int) -> str:
    """Return the whole file, regardless of the current position."""
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")
