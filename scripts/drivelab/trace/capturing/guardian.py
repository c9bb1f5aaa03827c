"""A process that outlives its parent's kill -9: ends the traced command, puts the tracer back, unmounts.

It waits for the end of its standard input, which comes with the parent's end, however that comes. Should it be killed
too, the journals are left, and the next capture does its work.
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

from drivelab.errors import UserError
from drivelab.trace import blktrace
from drivelab.trace.capturing import mounts, tracer
from drivelab.trace.capturing.processes import MARK, marked, started

ATTEMPTS = 100
PAUSE_S = 0.1
_SCRIPTS = Path(__file__).resolve().parents[3]


class Guardian:
    """The process, as its parent sees it."""

    def __init__(self, process: subprocess.Popen[bytes], mark: str) -> None:
        self._process = process
        self.environment = {**os.environ, MARK: mark}
        """For commands, so that they are known from their very beginning."""

    def session(self, pid: int) -> None:
        """Let the session that `pid` leads be ended too, whatever its processes do to their environment."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{pid}\n".encode())
            self._process.stdin.flush()


@contextmanager
def watch() -> Iterator[Guardian]:
    """Have a guardian while a capture is at work."""
    mark = f"{os.getpid()}.{started(os.getpid())}"
    process = subprocess.Popen(
        [sys.executable, "-m", "drivelab.trace.capturing.guardian", mark],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(_SCRIPTS)},
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdout.read(1)  # ready: its own start does not disturb what is measured
        yield Guardian(process, mark)
    finally:
        with suppress(BrokenPipeError):
            process.stdin.write(b"done\n")
            process.stdin.close()
        process.stdout.close()
        process.wait()


def main() -> None:
    """Wait for the end of the parent; do its work unless it said that it is done."""
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
    recover()


def recover() -> None:
    """Undo what a killed process left; nothing happens to what a living one uses."""
    for action in (recover_tracer, blktrace.recover, mounts.recover_mounts):
        for _ in range(ATTEMPTS):
            with suppress(UserError, OSError):
                action()
                break
            time.sleep(PAUSE_S)


def recover_tracer() -> None:
    """Raises UserError while another capture has the tracer, OSError when it cannot be put back."""
    if any((tracer.RUN / name).exists() for name in (tracer.JOURNAL, tracer.MOUNT_JOURNAL)):
        with tracer.lock():
            tracer.recover()


if __name__ == "__main__":
    main()
