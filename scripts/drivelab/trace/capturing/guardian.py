"""Clean up after a kill -9 of the parent: kill the command, restore, unmount.

The guardian process waits for the end of its standard input, which comes when the parent ends in any way. If the
guardian is killed too, the journals remain, and the next capture cleans up.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from drivelab.core.errors import UserError
from drivelab.core.private import run_directory
from drivelab.core.programs import python
from drivelab.trace.capturing import blktrace, mounts, tracer
from drivelab.trace.capturing.capture_report import MARK, alive, marked, started

ATTEMPTS = 100
PAUSE_S = 0.1
_SCRIPTS = Path(__file__).resolve().parents[3]


class Guardian:
    """The guardian process as its parent sees it."""

    def __init__(self, process: subprocess.Popen[bytes], mark: str) -> None:
        self._process = process
        self.environment = {**os.environ, MARK: mark}
        """Environment for commands; its mark identifies them from their start."""

    def session(self, pid: int) -> None:
        """Add the session led by `pid`, in case its processes drop the environment."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{pid}\n".encode())
            self._process.stdin.flush()


@contextmanager
def watch() -> Iterator[Guardian]:
    """Run a guardian during a capture."""
    mark = f"{os.getpid()}.{started(os.getpid())}"
    process = subprocess.Popen(
        python("-m", "drivelab.trace.capturing.guardian", mark),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(_SCRIPTS)},
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdout.read(1)  # wait until ready, so that its start does not disturb the measurement
        yield Guardian(process, mark)
    finally:
        with suppress(BrokenPipeError):
            process.stdin.write(b"done\n")
            process.stdin.close()
        process.stdout.close()
        process.wait()


def main() -> None:
    """Wait for the end of the parent; clean up unless the parent reported "done"."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdout.write("r")
    sys.stdout.flush()
    lines = [line.strip() for line in sys.stdin]
    if "done" in lines:
        return
    for line in lines:
        with suppress(ProcessLookupError, ValueError):
            os.killpg(int(line), signal.SIGKILL)
    while pids := marked(sys.argv[1]):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE_S)
    parent, start = sys.argv[1].split(".")
    while alive(int(parent), start):  # it closes its files, which ends the input here, before it ends
        time.sleep(PAUSE_S)
    recover()


def recover() -> None:
    """Clean up after killed processes; leave resources of living ones alone."""
    for action in (recover_tracer, blktrace.recover, mounts.recover_mounts):
        for _ in range(ATTEMPTS):
            with suppress(UserError, OSError):
                action()
                break
            time.sleep(PAUSE_S)


def recover_tracer() -> None:
    """Restore the tracer after a killed capture.

    Raises UserError while another capture uses the tracer, OSError when it cannot be restored.
    """
    if any((run_directory() / name).exists() for name in (tracer.JOURNAL, tracer.MOUNT_JOURNAL)):
        with tracer.lock():
            tracer.recover()


if __name__ == "__main__":
    main()
