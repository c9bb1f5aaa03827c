"""Capture with the program blktrace."""

from __future__ import annotations

import json
import mmap
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import TextIO

from drivelab.core import programs
from drivelab.core.errors import UserError
from drivelab.core.lock import locked_file
from drivelab.core.private import make_private, run_directory
from drivelab.trace.capturing import tracer
from drivelab.trace.capturing.capture_report import Cost, alive, boot_id, started
from drivelab.trace.capturing.disk import Disk

DEBUG_BLOCK = Path("/sys/kernel/debug/block")
START_S = 10.0
SETTLE_S = 0.1
"""From open files to the start of the trace: blktrace does not report its start; `stop` checks it."""
STOP_S = 60.0
BUFFER_KIB, BUFFERS = 2048, 8
"""Per CPU; blktrace reads a buffer only when it is full."""
START_MARK, END_MARK = b"drivelab: start", b"drivelab: end"


class RefusedError(Exception):
    """blktrace does not work here; the message says why."""


class Blktrace:
    """One capture of one block device."""

    name = "blktrace"
    interval_s = 1.0
    """Interval between calls of `poll`."""

    def __init__(self, disk: Disk, output: Path) -> None:
        """`output` is the base name of the files to write."""
        self._disk = disk
        self._output = output
        self._process: subprocess.Popen[str] | None = None
        self._lock: TextIO | None = None
        self._cpu_s = 0.0
        self.remarks: list[str] = []
        """Problems of the capture, as sentences."""
        self.processes: dict[int, str] = {}
        """No names: the records contain them."""

    def start(self) -> None:
        """Start tracing.

        Raises RefusedError if blktrace is missing or the kernel refuses it (lockdown: EPERM), UserError if another
        drivelab process traces the device.
        """
        if shutil.which("blktrace") is None:
            raise RefusedError("blktrace is not installed")
        self._lock = locked_file(
            make_private(run_directory()) / f"blktrace-{self._disk.name}.lock",
            f"another drivelab process traces {self._disk.name}; wait until it ends",
        )
        try:
            recover()
            # On SIGINT blktrace ends its trace in the kernel, so it gets SIGINT if this process is killed.
            command = ["blktrace", "-d", self._disk.device,
                       "-b", str(BUFFER_KIB), "-n", str(BUFFERS),
                       "-D", str(self._output.parent), "-o", self._output.name]  # fmt: skip
            self._process = programs.start(
                command, signal="INT", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                start_new_session=True,
            )  # fmt: skip
            self._wait_until_open(self._process)
            pid, own = self._process.pid, os.getpid()
            body = {"boot_id": boot_id(), "pid": pid, "started": started(pid), "trace": str(self._disk.trace),
                    "owner": own, "owner_started": started(own)}  # fmt: skip
            # From here on we must end the kernel's trace.
            tracer.save_journal(run_directory() / f"blktrace-{self._disk.name}.json", body)
            time.sleep(SETTLE_S)
            if not self._mark(START_MARK):
                raise RefusedError("the start mark could not be written to the trace")
        except BaseException:
            self.abandon()
            raise

    def poll(self) -> None:
        """Do nothing: blktrace reads the events itself."""

    def stop(self) -> Counter[str]:
        """Stop tracing and return losses by kind."""
        assert self._process is not None
        ended = self._mark(END_MARK)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        text = self._end(self._process)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self._cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        status = self._process.returncode
        self.abandon()
        # "Total: 123 events (dropped 4), 5 KiB data"
        dropped = re.search(r"dropped\s+(\d+)", text)
        if status or dropped is None:
            lines = text.strip().splitlines()
            self.remarks.append(f"blktrace ended with status {status}: {lines[-1] if lines else 'no message'}")
        files = sorted(self._output.parent.glob(f"{self._output.name}.blktrace.*"))
        return Counter({
            "dropped_events": int(dropped[1]) if dropped else 0,
            "blktrace_failed": int(bool(status) or dropped is None),
            "start": int(not _holds(files, START_MARK)),
            "end": int(not ended or not _holds(files, END_MARK)),
        })  # fmt: skip

    def cost(self) -> Cost:
        """Return blktrace's cost of reading and writing, after `stop`."""
        return Cost(self._cpu_s, None, None, BUFFER_KIB * BUFFERS * 1024)

    def abandon(self) -> None:
        """Stop tracing without results; does nothing if already stopped."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            self._end(process)
        if self._lock is not None:
            recover()
            self._lock.close()
            self._lock = None

    def _end(self, process: subprocess.Popen[str]) -> str:
        """Interrupt blktrace, wait for it, and return its output."""
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=STOP_S)[0]
        except BaseException:
            process.kill()
            process.communicate()
            raise

    def _wait_until_open(self, process: subprocess.Popen[str]) -> None:
        deadline_s = time.monotonic() + START_S
        expected = os.cpu_count() or 1
        while len(list(self._output.parent.glob(f"{self._output.name}.blktrace.*"))) < expected:
            if process.poll() is not None:
                lines = (process.stdout.read() if process.stdout else "").splitlines()
                raise RefusedError(lines[0] if lines else f"blktrace ended with status {process.returncode}")
            if time.monotonic() > deadline_s:
                raise RefusedError(f"blktrace did not start within {START_S:.0f} s")
            time.sleep(0.01)

    def _mark(self, mark: bytes) -> bool:
        """Write a mark into an active trace; `stop` looks for both marks."""
        try:
            (DEBUG_BLOCK / self._disk.name / "msg").write_bytes(mark)
        except OSError:
            return False
        return True


def recover() -> None:
    """End kernel traces whose blktrace was killed; they block all other tracers.

    Raises UserError while a blktrace without an owner is still ending.
    """
    for journal in sorted(run_directory().glob("blktrace-*.json")):
        body = json.loads(journal.read_text())
        if body["boot_id"] == boot_id():
            if alive(body["pid"], body["started"]):
                if alive(body["owner"], body["owner_started"]):
                    continue
                raise UserError(f"blktrace (process {body['pid']}) is still running; wait for it, or interrupt it")
            device = Path(body["trace"]).parent.name
            if tracer.text(Path(body["trace"]) / "enable") == "1":
                programs.run(["blktrace", "-k", f"/dev/{device}"])
        journal.unlink(missing_ok=True)


def _holds(files: list[Path], mark: bytes) -> bool:
    for path in files:
        with path.open("rb") as file:
            if path.stat().st_size and mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ).find(mark) >= 0:
                return True
    return False
