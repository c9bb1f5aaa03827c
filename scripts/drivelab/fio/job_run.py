"""Run one fio process and keep all its evidence.

Kill its process group if it hangs.
"""

from __future__ import annotations

import re
import shlex
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from drivelab.core import programs
from drivelab.core.errors import CellFailed, UserError
from drivelab.core.programs import TICK_S, Tick, Timing, run_program
from drivelab.drives import tools
from drivelab.fio.consistency import require_own
from drivelab.fio.early_end import EarlyEnd, StopRule
from drivelab.fio.prepared import Prepared

OLDEST = (3, 33)
COMMAND = "command"
"""File with fio's command line, beside the job."""
GRACE_S = 60.0
"""Limit of fio's time beyond its runtime, and of the time in which a drive completes nothing."""


def fio_version() -> str:
    """Return fio's version, such as `3.33`. Raises UserError if fio is missing or too old."""
    program = shutil.which("fio")
    if program is None:
        raise UserError("fio is not installed; run ./drivelab setup, or install the package fio")
    text = programs.run([program, "--version"]).stdout.strip()
    match = re.match(r"fio-(\d+)\.(\d+)", text)
    if match is None or (int(match[1]), int(match[2])) < OLDEST:
        raise UserError(f"fio is {text or 'of unknown version'}, but drivelab needs 3.33 or newer; install a newer fio")
    return text.removeprefix("fio-")


def choose_engine(path: str, label: str, *, direct: bool = True) -> str:
    """Return `io_uring`, or `libaio` if the kernel or a container forbids io_uring.

    Tested with one read of the device or file at `path`, which messages call `label`.
    """
    message = ""
    for engine in ("io_uring", "libaio"):
        probe = tools.run(
            "fio", "--name=probe", f"--filename={path}", f"--ioengine={engine}", "--rw=read", "--thread", "--bs=4096",
            "--number_ios=1", f"--direct={int(direct)}", "--size=1m", "--readonly", timeout_s=GRACE_S,
        )  # fmt: skip
        if probe.status == 0:
            return engine
        message = probe.words
    raise UserError(f"fio cannot read {label} with io_uring or libaio ({message}); check the drive and its cable")


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
    readonly: bool = False,
    prepared: Prepared | None = None,
) -> Timing:
    """Run fio on a job text in `directory` and leave the evidence there.

    Args:
        name: the kernel's name of the drive; None for a file, whose hangs cannot be detected.
        runtime_s: the expected runtime; fio may exceed it by GRACE_S.
        slice_s: the interval of status documents.
        on_tick: called about once a second.
        on_hang: called if killing fio has no effect: a process in uninterruptible sleep ends only when the drive
            answers.
        idles: whether the job may complete nothing while nothing is in flight.
        inherited: descriptors that fio inherits; the job may name its device by one.
        until: a stop rule, checked four times per slice; it ends fio in an orderly way. It needs `slice_s`.
        readonly: whether fio refuses every job that writes.
        prepared: a fio that `prepare` started for the same job in this directory; it is released instead.

    Raises CellFailed, after killing fio's process group, if the drive completes nothing for GRACE_S or fio exceeds its
    time. Raises CellFailed for JSON of another job or run. Exit status and numbers are not checked here.
    If this process is killed, fio is killed with it.
    """
    command = _command(slice_s, readonly)
    if prepared is None:
        _write_job(job, command, directory)
    watchdog = _Watchdog(name, runtime_s, idles)

    def tick(elapsed_s: float) -> None:
        watchdog.check(elapsed_s)
        on_tick(elapsed_s)

    began = time.time(), time.monotonic()
    if until is None:
        begin = None if prepared is None else prepared.release
        timing = run_program(command, directory, tick, on_hang, inherited=inherited, begin=begin)
    else:
        early = EarlyEnd(directory, until)
        look_s = min(TICK_S, (slice_s or TICK_S) / 4)
        timing = run_program(command, directory, tick, on_hang, inherited=inherited, until=early.due, look_s=look_s)
    began_by_end_clock_s = time.time() - (time.monotonic() - began[1])
    require_own(directory, min(began[0], began_by_end_clock_s))
    return timing


def prepare(job: str, directory: Path, path: str, inherited: Sequence[int] = ()) -> Prepared:
    """Start fio for a job text in `directory`, and hold it before it opens `path`, the drive as the job names it."""
    command = _command(None, readonly=False)
    _write_job(job, command, directory)
    return Prepared(command, directory, path, inherited)


def _command(slice_s: float | None, readonly: bool) -> list[str]:
    command = ["fio", "--output-format=json+", "--output=fio.json", "--eta=never"]
    if slice_s is not None:
        command.append(f"--status-interval={slice_s:g}")
    if readonly:
        command.append("--readonly")
    return [*command, "job.fio"]


def _write_job(job: str, command: Sequence[str], directory: Path) -> None:
    (directory / "job.fio").write_text(job)
    (directory / COMMAND).write_text(shlex.join(command) + "\n")


class _Watchdog:
    """Detect a fio process that makes no progress or exceeds its time."""

    def __init__(self, name: str | None, runtime_s: float | None, idles: bool) -> None:
        self._name, self._runtime_s, self._idles = name, runtime_s, idles
        self._completed, self._progress_s = "", 0.0

    def check(self, elapsed_s: float) -> None:
        """Raise CellFailed if fio must end."""
        silent_s, who = (0.0, "") if self._name is None else self._silence(self._name, elapsed_s)
        if silent_s > GRACE_S:
            raise CellFailed(f"{who} nothing for {GRACE_S:.0f} s; drivelab killed fio")
        if self._runtime_s is not None and elapsed_s > self._runtime_s + GRACE_S:
            cause = f", and {who} nothing in the last {silent_s:.0f} s" if silent_s > GRACE_S / 2 else ""
            raise CellFailed(f"fio ran {GRACE_S:.0f} s longer than its runtime{cause}; drivelab killed it")

    def _silence(self, name: str, elapsed_s: float) -> tuple[float, str]:
        """Return for how long nothing was completed, and who did nothing."""
        outstanding = _outstanding(name)
        if (latest := _completed(name)) != self._completed or (self._idles and not outstanding):
            self._completed, self._progress_s = latest, elapsed_s
        return elapsed_s - self._progress_s, "the drive completed" if outstanding else "fio issued"


def _completed(name: str) -> str:
    """Return the completion counters of the device's stat, or `gone`. Any change is progress."""
    try:
        fields = Path(f"/sys/class/block/{name}/stat").read_text().split()
    except OSError:
        return "gone"
    return " ".join(fields[i] for i in (0, 4, 11) if i < len(fields))


def _outstanding(name: str) -> bool:
    """Return whether requests are in flight (Documentation/block/stat.rst). Return True if the device is gone."""
    try:
        return any(int(count) for count in Path(f"/sys/class/block/{name}/inflight").read_text().split())
    except OSError:
        return True
