"""Programs that erase a drive: they run to their end, and the next command that wants the drive waits for them.

A drive finishes an erase that has begun, even if the program is killed. The kernel, too, sends a discard to its end.
Killing such a program would only hide that the drive is still at work. Each program has a lock file in the run
directory, named after the drive and its attachment (`diskseq`). The program inherits the lock (flock(2)), so the lock
lasts as long as the program, even if the stage is killed.
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

from drivelab.drives import tools
from drivelab.drives.node import Node, inherited
from drivelab.drives.sysfs import block_dir, read_text
from drivelab.drives.tools import NO_ANSWER, Output
from drivelab.errors import UserError
from drivelab.run_directory import run_directory


def run(name: str, program: str, *arguments: str, timeout_s: float = 60.0) -> Output:
    """Run a program that erases the drive of kernel name `name`, and never kill the program.

    The program has its own session, so neither Ctrl-C nor a closed terminal reaches it. An interrupt is raised at once
    and leaves the program running. After `timeout_s` the status is 124, and the program keeps running too.

    Raises UserError when the program is not installed, or the run directory cannot be written to.
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
            return Output(NO_ANSWER, "", f"{program} did not answer within {timeout_s:.0f} s, and is left running")
        _path(name).unlink(missing_ok=True)
        return Output(status, _text(out.fileno()), _text(err.fileno()))


def wait_until_ended(node: Node) -> None:
    """Print and wait for a program that still erases a drive after its stage was killed.

    Returns at once if there is none. The caller has the drive's lock, or has seen that nobody has it.
    """
    path = _path(node.name, node.diskseq)
    while (descriptor := _opened(path)) is not None:
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print(_words(node.name, _text(descriptor)), flush=True)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                # Another command may have waited too, and begun an erase of its own: its file is not this one.
                if os.path.samestat(path.stat(), os.fstat(descriptor)):
                    path.unlink()
        finally:
            os.close(descriptor)


def _opened(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # none, or another user's: that user's drive
        return None


def _path(name: str, diskseq: str | None = None) -> Path:
    sequence = diskseq or read_text(block_dir(name) / "diskseq") or "unknown"  # since Linux 5.15
    return run_directory() / "erasing" / f"{name}-{sequence}.json"


def _locked(name: str) -> int:
    """Descriptor of the lock file, locked and empty. The caller holds the drive, so no other process writes to it."""
    path = _path(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UserError(
            f"drive {name} was not erased: {path} cannot be written ({error.strerror}). Other commands need this file "
            "to wait for the erase. Run as root, or set DRIVELAB_RUN_DIR to a folder that you can write to."
        ) from None
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def _note(lock: int, facts: dict[str, object]) -> None:
    os.pwrite(lock, json.dumps(facts).encode(), 0)


def _words(name: str, text: str) -> str:
    """A stage killed right after the start of the program has left no text."""
    facts = json.loads(text) if text else {}
    program = f"'{shlex.join(facts['command'])}' (process {facts['pid']})" if facts else "a program"
    return (
        f"drive {name}: {program} is still erasing the drive. The stage that started it was killed, and an erase "
        "cannot be stopped. drivelab waits until it ends."
    )


def _text(descriptor: int) -> str:
    """All of a file, whatever its position."""
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")
