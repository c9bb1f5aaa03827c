"""Find processes, mounts and loop devices that a test has left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from drivelab.core.programs import process_state
from drivelab.virtual import fuse, manage


def processes(*words: str) -> list[int]:
    """Return processes that this test started, directly or not; all, or those with all of `words` as arguments.

    They have the test's run directory in their environment or, for drive servers, in their arguments. An argument that
    is a path also matches by its last part.
    """
    run_directory = os.environ["DRIVELAB_RUN_DIR"]
    pids: list[int] = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            environment = (directory / "environ").read_text(errors="replace").split("\0")
            arguments = (directory / "cmdline").read_text(errors="replace").split("\0")
        except OSError:
            continue
        mine = f"DRIVELAB_RUN_DIR={run_directory}" in environment or any(
            run_directory in argument for argument in arguments
        )
        if mine and {*words} <= {*arguments, *(Path(argument).name for argument in arguments)}:
            pids.append(int(directory.name))
    return [pid for pid in pids if pid != os.getpid()]


def leftovers() -> list[str]:
    """Return descriptions of this test's remaining processes, mounts and loop devices."""
    run_directory = Path(os.environ["DRIVELAB_RUN_DIR"]).resolve()
    result = [f"process {pid}: {_command(pid)}" for pid in processes() if process_state(pid)[0] != "X"]
    result += [f"mount {path}" for path, _ in fuse.mounts() if run_directory in path.parents]
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        if str(run_directory) in backing.read_text():
            result.append(f"loop device {backing.parent.parent.name} over {backing.read_text().strip()}")
    return result


def kill(*pids: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def afflict(command: str, number: signal.Signals, running: subprocess.Popen[str]) -> None:
    """Signal every process of a command that writes to a device, later ones too, until `running` has ended."""
    while running.poll() is None:
        for pid in processes(command):
            with suppress(ProcessLookupError, FileNotFoundError):
                written = Path(f"/proc/{pid}/io").read_text().partition("\nwrite_bytes: ")[2].split()[0]
                if int(written) > 1 << 18:  # a fio that waits for its turn has written its own files only
                    os.kill(pid, number)
        time.sleep(0.01)


def end_processes() -> None:
    """Kill the remaining processes of this test."""
    while result := processes():
        kill(*result)
        manage.stop(force=True)  # else a process that waits for a drive could not end


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "gone"
