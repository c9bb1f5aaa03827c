"""Runs one fio process and keeps all its evidence; a hang ends it and its whole process group."""

from __future__ import annotations

import re
import shlex
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from drivelab import parent
from drivelab.drives import tools
from drivelab.drives.guard import HeldDevice
from drivelab.errors import UserError
from drivelab.fio.early_end import EarlyEnd, StopRule
from drivelab.fio.own import require_own
from drivelab.fio.result import CellFailed
from drivelab.process import TICK_S, Tick, Timing, run_program

OLDEST = (3, 33)
COMMAND = "command"
"""File with fio's command line beside its job."""
GRACE_S = 60.0
"""How long fio may take beyond the runtime that it was asked for, and how long a drive may complete nothing."""


def fio_version() -> str:
    """Version such as `3.33`; raises UserError when fio is missing or too old."""
    program = shutil.which("fio")
    if program is None:
        raise UserError("fio is not installed; run ./drivelab setup, or install the package fio")
    text = parent.run([program, "--version"]).stdout.strip()
    match = re.match(r"fio-(\d+)\.(\d+)", text)
    if match is None or (int(match[1]), int(match[2])) < OLDEST:
        raise UserError(f"fio is {text or 'of unknown version'}, drivelab needs 3.33 or newer; install a newer fio")
    return text.removeprefix("fio-")


def choose_engine(device: HeldDevice) -> str:
    """`io_uring`, or `libaio` where the kernel or a container forbids io_uring; tried with one read."""
    words = ""
    for engine in ("io_uring", "libaio"):
        probe = tools.run("fio", "--name=probe", f"--filename={device.path}", f"--ioengine={engine}", "--rw=read",
                          "--thread", "--bs=4096", "--number_ios=1", "--direct=1", "--size=1m", "--readonly",
                          timeout_s=GRACE_S)  # fmt: skip
        if probe.status == 0:
            return engine
        words = probe.words
    raise UserError(
        f"fio can read {device.device} neither with io_uring nor with libaio ({words}); mend the drive or its cable"
    )


def run_fio(
    name: str | None,
    job: str,
    directory: Path,
    *,
    runtime_s: float | None = None,
    slice_s: float | None = None,
    on_tick: Tick = lambda elapsed_s: None,
    on_hang: Callable[[], None] = lambda: None,
    idles: bool = False,
    inherited: Sequence[int] = (),
    until: StopRule | None = None,
) -> Timing:
    """Run fio on a job text in `directory` and leave the evidence there, as `drivelab.fio.result` reads it.

    `name` is the kernel's name of the drive; of a file, which has none, nobody can say that it hangs. `on_tick` is
    called about once a second. Raises CellFailed when the drive completes nothing for GRACE_S, unless the job `idles`
    and nothing is in flight, or fio overruns `runtime_s` by as much; fio's process group is killed then, and `on_hang`
    called if that is in vain (a process in uninterruptible sleep ends only when the drive answers). With `until`, which
    takes slices, fio is ended in order once the rule says so of a status document, looked for four times a slice. fio
    inherits the descriptors `inherited`, by which the job may name its device. Raises CellFailed for JSON of another
    job or run; exit status and numbers are not judged here.
    If this process is killed, fio is killed with it.
    """
    (directory / "job.fio").write_text(job)
    command = ["fio", "--output-format=json+", "--output=fio.json", "--eta=never"]
    if slice_s is not None:
        command.append(f"--status-interval={slice_s:g}")
    command.append("job.fio")
    (directory / COMMAND).write_text(shlex.join(command) + "\n")
    watchdog = _Watchdog(name, runtime_s, idles)

    def tick(elapsed_s: float) -> None:
        watchdog.look(elapsed_s)
        on_tick(elapsed_s)

    began = time.time(), time.monotonic()
    if until is None:
        timing = run_program(command, directory, tick, on_hang, inherited=inherited)
    else:
        early = EarlyEnd(directory, until)
        look_s = min(TICK_S, (slice_s or TICK_S) / 4)
        timing = run_program(command, directory, tick, on_hang, inherited=inherited, until=early.due, look_s=look_s)
    by_the_clock_of_the_end_s = time.time() - (time.monotonic() - began[1])
    require_own(directory, min(began[0], by_the_clock_of_the_end_s))
    return timing


class _Watchdog:
    """Ends a fio process that makes no progress, or none in time."""

    def __init__(self, name: str | None, runtime_s: float | None, idles: bool) -> None:
        self._name, self._runtime_s, self._idles = name, runtime_s, idles
        self._completed, self._progress_s = "", 0.0

    def look(self, elapsed_s: float) -> None:
        """Raises CellFailed when it is time to."""
        if self._name is not None:
            self._look_for_progress(self._name, elapsed_s)
        if self._runtime_s is not None and elapsed_s > self._runtime_s + GRACE_S:
            raise CellFailed(f"fio ran {GRACE_S:.0f} s longer than asked; it was killed")

    def _look_for_progress(self, name: str, elapsed_s: float) -> None:
        outstanding = _outstanding(name)
        if (latest := _completed(name)) != self._completed or (self._idles and not outstanding):
            self._completed, self._progress_s = latest, elapsed_s
        if elapsed_s - self._progress_s > GRACE_S:
            who = "the drive completed" if outstanding else "fio issued"
            raise CellFailed(f"{who} nothing for {GRACE_S:.0f} s; fio was killed")


def _completed(name: str) -> str:
    """The completion counters of the device's stat; any change is progress. Gone with the device."""
    try:
        fields = Path(f"/sys/class/block/{name}/stat").read_text().split()
    except OSError:
        return "gone"
    return " ".join(fields[i] for i in (0, 4, 11) if i < len(fields))


def _outstanding(name: str) -> bool:
    """Whether the drive owes answers to requests (Documentation/block/stat.rst); true of a device that is gone."""
    try:
        return any(int(count) for count in Path(f"/sys/class/block/{name}/inflight").read_text().split())
    except OSError:
        return True
