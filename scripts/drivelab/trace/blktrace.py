"""Capture with the program blktrace."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

DEBUG_BLOCK = Path("/sys/kernel/debug/block")
START_S = 10.0
SETTLE_S = 0.1
"""From its open files to the start of the trace: blktrace does not say when it has begun, `stop` checks it."""
STOP_S = 60.0
MARK = b"drivelab: start"


class RefusedError(Exception):
    """blktrace does not work here; the text says why."""


class Blktrace:
    """One capture of one block device."""

    name = "blktrace"

    def __init__(self, device: str, output: Path, debug_block: Path = DEBUG_BLOCK) -> None:
        """`output` is the base name of the files to write."""
        self._device = device
        self._output = output
        self._debug_block = debug_block
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Begin to trace; raises RefusedError when there is no blktrace or the kernel refuses it (lockdown: EPERM)."""
        if shutil.which("blktrace") is None:
            raise RefusedError("blktrace is not installed")
        # blktrace ends its trace in the kernel when it is interrupted, so that is what it gets if we are killed.
        command = ["setpriv", "--pdeathsig", "INT", "blktrace", "-d", self._device, "-b", "2048", "-n", "8",
                   "-D", str(self._output.parent), "-o", self._output.name]  # fmt: skip
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip
        try:
            self._wait_until_open(self._process)
            time.sleep(SETTLE_S)
            self._mark()
        except BaseException:
            self.abandon()
            raise

    def poll(self) -> None:
        """Nothing to do: blktrace reads by itself."""

    def stop(self) -> Counter[str]:
        """End the tracing; returns losses by kind."""
        assert self._process is not None
        process, self._process = self._process, None
        process.send_signal(signal.SIGINT)
        try:
            text, _ = process.communicate(timeout=STOP_S)
        except BaseException:
            process.kill()
            process.communicate()
            subprocess.run(["blktrace", "-k", self._device], capture_output=True, check=False)
            raise
        # "Total: 123 events (dropped 4), 5 KiB data"
        dropped = re.search(r"dropped\s+(\d+)", text)
        files = self._output.parent.glob(f"{self._output.name}.blktrace.*")
        late = not any(MARK in path.read_bytes() for path in files)
        return Counter({"dropped_events": int(dropped[1]) if dropped else 0, "start": int(late)})

    def processes(self) -> dict[int, str]:
        """Names of the processes: they are in the records."""
        return {}

    def abandon(self) -> None:
        """End the tracing whatever came of it; harmless when it has ended."""
        if self._process is not None and self._process.poll() is None:
            self.stop()
        self._process = None

    def _wait_until_open(self, process: subprocess.Popen[str]) -> None:
        deadline_s = time.monotonic() + START_S
        expected = os.cpu_count() or 1
        while len(list(self._output.parent.glob(f"{self._output.name}.blktrace.*"))) < expected:
            if process.poll() is not None:
                lines = (process.stdout.read() if process.stdout else "").splitlines()
                raise RefusedError(lines[0] if lines else f"blktrace ended with status {process.returncode}")
            if time.monotonic() > deadline_s:
                raise RefusedError(f"blktrace did not begin within {START_S:.0f} s")
            time.sleep(0.01)

    def _mark(self) -> None:
        """Put a mark into the trace, which a trace has only if it had begun: `stop` looks for it."""
        try:
            (self._debug_block / Path(self._device).name / "msg").write_bytes(MARK)
        except OSError as error:
            raise RefusedError(f"no mark could be set in the trace ({error.strerror})") from None
