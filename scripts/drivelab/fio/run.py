"""Runs one fio process and keeps all its evidence; a hang ends it and its whole process group."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from drivelab.drives import tools
from drivelab.drives.guard import ApprovedDevice
from drivelab.errors import UserError
from drivelab.fio.result import CellFailed

OLDEST = (3, 33)
GRACE_S = 60.0
"""How long fio may take beyond the runtime that it was asked for, and how long a drive may complete nothing."""


@dataclass(frozen=True)
class Timing:
    """Start and end of the fio process, seconds of the monotonic clock."""

    started_s: float
    ended_s: float


def fio_version() -> str:
    """Version such as `3.33`; raises UserError when fio is missing or too old."""
    program = shutil.which("fio")
    if program is None:
        raise UserError("fio is not installed; run ./drivelab setup, or install the package fio")
    text = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    match = re.match(r"fio-(\d+)\.(\d+)", text)
    if match is None or (int(match[1]), int(match[2])) < OLDEST:
        raise UserError(f"fio is {text or 'of unknown version'}, drivelab needs 3.33 or newer; install a newer fio")
    return text.removeprefix("fio-")


def choose_engine(device: ApprovedDevice) -> str:
    """`io_uring`, or `libaio` where the kernel or a container forbids io_uring; tried with one read."""
    words = ""
    for engine in ("io_uring", "libaio"):
        probe = tools.run("fio", "--name=probe", f"--filename={device.device}", f"--ioengine={engine}", "--rw=read",
                          "--bs=4096", "--number_ios=1", "--direct=1", "--size=1m", "--readonly",
                          timeout_s=GRACE_S)  # fmt: skip
        if probe.status == 0:
            return engine
        words = probe.words
    raise UserError(
        f"fio can read {device.device} neither with io_uring nor with libaio ({words}); mend the drive or its cable"
    )


def run_fio(
    device: ApprovedDevice,
    job: str,
    directory: Path,
    *,
    runtime_s: float | None = None,
    slice_s: float | None = None,
    on_tick: Callable[[float], None] = lambda elapsed_s: None,
    on_hang: Callable[[], None] = lambda: None,
) -> Timing:
    """Run fio on a job text in `directory` and leave the evidence there, as `drivelab.fio.result` reads it.

    `on_tick` is called about once a second. Raises CellFailed when the drive completes nothing for GRACE_S or fio
    overruns `runtime_s` by as much; fio's process group is killed then, and `on_hang` called if that is in vain
    (a process in uninterruptible sleep ends only when the drive answers). Exit status and JSON are not judged here.
    If this process is killed, fio is killed with it: setpriv(1) asks the kernel for that (prctl(2),
    PR_SET_PDEATHSIG), which costs less than running Python code between fork and exec.
    """
    (directory / "job.fio").write_text(job)
    command = [
        "setpriv",
        "--pdeathsig",
        "KILL",
        "fio",
        "--output-format=json+",
        "--output=fio.json",
        "--eta=never",
    ]
    if slice_s is not None:
        command.append(f"--status-interval={slice_s:g}")
    with (directory / "stdout").open("wb") as out, (directory / "stderr").open("wb") as err:
        started_s = time.monotonic()
        process = subprocess.Popen(
            [*command, "job.fio"],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            process_group=0,
        )
        try:
            ended_s = _wait(process, device, started_s, runtime_s, on_tick)
        except BaseException:
            _kill_group(process, on_hang)
            raise
    (directory / "exit_code").write_text(f"{process.returncode}\n")
    return Timing(started_s, ended_s)


def _wait(
    process: subprocess.Popen[bytes],
    device: ApprovedDevice,
    started_s: float,
    runtime_s: float | None,
    on_tick: Callable[[float], None],
) -> float:
    """Wait on a pidfd: Popen.wait polls with a delay of up to 50 ms, which would be a gap between cells."""
    descriptor = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        completed, progress_s = _completed(device), started_s
        while not poll.poll(1000):
            now_s = time.monotonic()
            if (latest := _completed(device)) != completed:
                completed, progress_s = latest, now_s
            if now_s - progress_s > GRACE_S:
                who = "the drive completed" if _outstanding(device) else "fio issued"
                raise CellFailed(f"{who} nothing for {GRACE_S:.0f} s; fio was killed")
            if runtime_s is not None and now_s - started_s > runtime_s + GRACE_S:
                raise CellFailed(f"fio ran {GRACE_S:.0f} s longer than asked; it was killed")
            on_tick(now_s - started_s)
        ended_s = time.monotonic()
        process.wait()
        return ended_s
    finally:
        os.close(descriptor)


def _completed(device: ApprovedDevice) -> str:
    """The completion counters of the device's stat; any change is progress. Gone with the device."""
    try:
        fields = Path(f"/sys/class/block/{device.name}/stat").read_text().split()
    except OSError:
        return "gone"
    return " ".join(fields[i] for i in (0, 4, 11) if i < len(fields))


def _outstanding(device: ApprovedDevice) -> bool:
    """Whether the drive owes answers to requests (Documentation/block/stat.rst); true of a device that is gone."""
    try:
        return any(int(count) for count in Path(f"/sys/class/block/{device.name}/inflight").read_text().split())
    except OSError:
        return True


def _kill_group(process: subprocess.Popen[bytes], on_hang: Callable[[], None]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    for last_resort in (on_hang, None):
        try:
            process.wait(timeout=5)
            return
        except subprocess.TimeoutExpired:
            if last_resort is not None:
                last_resort()
    raise CellFailed(f"fio (process {process.pid}) cannot be killed while the drive hangs")
