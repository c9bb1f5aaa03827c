"""Prepare the next fio while a cell runs: it stops before it opens the drive, and starts at once when it is released.

From its start to its first I/O fio 3.33 needs about 0.3 s: it loads libraries, calibrates its clock, starts its
threads, always sleeps 0.1 s (backend.c, run_threads), and fills its buffers. A library (native/barrier) holds the
prepared fio after all of that, at its first open of the drive. The drive is not opened, so nothing reaches it before
the release, and no program such as udev reacts to its closing.

Holding at the job file would leave 0.15 s of calibration and sleep. `exec_prerun` runs after fio has opened the drive
for its size. A stop by a signal would be a race: a late one would let fio write beside its predecessor.

A prepared fio has the kernel's idle class until its release, so that it only uses CPUs that nothing else wants. It
ends if drivelab ends, in any way, or closes its end of the barrier.
"""

from __future__ import annotations

import functools
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from drivelab.core import programs
from drivelab.core.errors import CellFailed, UserError
from drivelab.core.programs import launch
from drivelab.native import built_barrier_path

_LIMIT_S = 300.0
"""Limit of the time that a fio may need to reach the barrier. It ends what hangs: a busy emulated processor needs many
times the usual 0.3 s."""
_ENDING_S = 5.0
"""Limit of the time from the end of a failed fio's output to the end of its process."""


class Prepared:
    """A fio process that waits before it opens `path`."""

    def __init__(self, command: Sequence[str], directory: Path, path: str, inherited: Sequence[int] = ()) -> None:
        """Start `command` in `directory`, which must hold its job.

        Raises UserError without a C compiler, and FileNotFoundError without fio.
        """
        self._own, theirs = socket.socketpair()
        with theirs:
            barrier = theirs.fileno()
            environment = {"LD_PRELOAD": str(built_barrier_path()), "DRIVELAB_BARRIER": f"{barrier} {path}"}
            try:
                self._process = launch(command, directory, [*inherited, barrier], environment)
            except BaseException:
                self._own.close()
                raise
        self._is_here = False
        self._is_idle = programs.has(programs.SYS_NICE)
        if self._is_idle:
            self._schedule(os.SCHED_IDLE, os.sched_param(0))

    @property
    def pid(self) -> int:
        """Return the process's id, which is also its group's."""
        return self._process.pid

    def is_held(self, wait_s: float = 0.0) -> bool:
        """Return whether fio is at the barrier, after waiting for it up to `wait_s`; False if it has ended."""
        if not self._is_here and select.select([self._own], [], [], wait_s)[0]:
            self._is_here = self._own.recv(1) == b"h"
        return self._is_here

    def release(self) -> tuple[subprocess.Popen[bytes], float]:
        """Let fio open the drive; return the process and the time of the release, seconds of the monotonic clock.

        A fio that ended before is returned too: its evidence says why. Raises CellFailed if fio neither ends nor
        reaches the barrier.
        """
        was_held = self.is_held()
        self._leave_idle_class()
        if not self.is_held(_LIMIT_S) and not self._has_ended():
            self.discard()
            raise CellFailed(f"a prepared fio was not ready within {_LIMIT_S:.0f} s; drivelab killed it")
        if not was_held:
            self._leave_idle_class()  # threads that it started in between
        released_s = time.monotonic()
        with suppress(BrokenPipeError):
            self._own.send(b"g")
        self._own.close()
        return self._process, released_s

    def discard(self) -> None:
        """Kill the process and wait for its end; it has not opened the drive."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)  # not reaped yet, so its group exists
            self._process.wait()
        self._own.close()

    def _has_ended(self) -> bool:
        """Return whether fio ends within _ENDING_S, without reaping it."""
        descriptor = os.pidfd_open(self._process.pid)
        try:
            return bool(select.select([descriptor], [], [], _ENDING_S)[0])
        finally:
            os.close(descriptor)

    def _leave_idle_class(self) -> None:
        if self._is_idle:
            self._schedule(os.sched_getscheduler(0), os.sched_getparam(0))

    def _schedule(self, policy: int, parameters: os.sched_param) -> None:
        """Set the scheduling of all threads (sched(7): new threads inherit it)."""
        with suppress(FileNotFoundError):
            for thread in Path(f"/proc/{self._process.pid}/task").iterdir():
                with suppress(ProcessLookupError):
                    os.sched_setscheduler(int(thread.name), policy, parameters)


@functools.cache
def can_prepare() -> bool:
    """Return whether the barrier holds this host's fio, after a trial on a temporary file.

    It does not hold a statically linked fio, and needs a C compiler.
    """
    with tempfile.TemporaryDirectory(prefix="drivelab-") as folder:
        file = Path(folder) / "file"
        file.write_bytes(bytes(4096))
        (Path(folder) / "job.fio").write_text(
            f"[trial]\nfilename={file}\nioengine=psync\nthread=1\nrw=read\nbs=4096\nsize=4096\ncreate_serialize=0\n"
        )
        if shutil.which("fio") is None:
            return False
        try:
            trial = Prepared(["fio", "--output=fio.json", "job.fio"], Path(folder), str(file))
        except UserError:
            return False
        trial._leave_idle_class()
        try:
            return trial.is_held(_LIMIT_S)
        finally:
            trial.discard()
