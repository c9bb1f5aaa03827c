"""Programs that erase a drive: they run to their end, and the next command that wants the drive waits for them.

A drive finishes an erase that has begun, whatever becomes of the program. The kernel does not end a discard either
before all of it was sent. So to kill these programs would only hide that the drive is at work. Each has a lock file in
the run directory, named after the drive and the kernel's number for its attachment (`diskseq`). The program inherits
the lock (flock(2)), so the lock lasts as long as the program does, also when the stage is killed at any moment.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import subprocess
import tempfile
import time
from pathlib import Path

from drivelab.drives import tools
from drivelab.drives.lock import is_held
from drivelab.drives.node import inherited
from drivelab.drives.sysfs import block_dir, read_text
from drivelab.drives.tools import NO_ANSWER, Output
from drivelab.errors import UserError
from drivelab.run_directory import run_directory


def run(name: str, program: str, *arguments: str, timeout_s: float = 60.0) -> Output:
    """Run a program that erases the drive of kernel name `name`; nothing ends it but itself.

    It has a session of its own, so neither Ctrl-C nor the end of the terminal reaches it. An interrupt is raised at
    once and leaves it running; a program that takes longer than `timeout_s` has status 124 and is left running too.

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


def wait_until_ended(name: str) -> None:
    """Wait for the program that a killed stage left erasing the drive of kernel name `name`; says so.

    Returns at once when there is none, or when a living stage uses the drive: that refuses others by its own lock.
    """
    path = _path(name)
    if is_held(Path("/dev", name)):
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # none, or another user's: that user's drive
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(_words(name, _text(descriptor)), flush=True)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _path(name: str) -> Path:
    sequence = read_text(block_dir(name) / "diskseq") or "0"  # since Linux 5.15
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
            f"drive {name} is not erased: {path} cannot be written ({error.strerror}). Other commands could not know "
            "of the erase. Run as root, or set DRIVELAB_RUN_DIR to a folder of yours."
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
        f"drive {name}: {program}, started by a stage that was killed, still erases the drive. An erase cannot be "
        "stopped. Waiting for its end."
    )


def _text(descriptor: int) -> str:
    """All of a file, whatever its position."""
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")
