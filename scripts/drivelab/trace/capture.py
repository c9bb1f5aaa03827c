"""Capture of the block requests of a command."""

from __future__ import annotations

import json
import os
import platform
import select
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from drivelab.errors import UserError
from drivelab.trace import ftrace
from drivelab.trace.blktrace import Blktrace, RefusedError
from drivelab.trace.decode import REPORT_NAME, count_events
from drivelab.trace.ftrace import Ftrace
from drivelab.trace.records import SECTOR_BYTES, cpu_files

BASE_NAME = "trace"
POLL_MS = 50
SETTLE_S = 2.0
"""After the command has ended, its last requests get so long to complete."""
SYS_BLOCK = Path("/sys/class/block")


@dataclass(frozen=True)
class CaptureReport:
    """What a capture says of itself; lies beside the raw files as capture.json."""

    backend: str
    """`blktrace` or `ftrace`."""
    blktrace_refused: str | None
    """Why blktrace was not used."""
    device: str
    capacity_bytes: int
    first_sector: int
    """Of 512 bytes: where the device begins on its disk, 0 unless it is a partition; raw sectors are the disk's."""
    logical_block_bytes: int
    command: list[str]
    exit_status: int
    """Of the command; negative: the signal that ended it."""
    started: str
    """UTC, ISO 8601."""
    duration_s: float
    """From the start of the command to its end."""
    realtime_offset_ns: int
    """What to add to the times of raw records for UTC since 1970."""
    kernel: str
    events: int
    lost: dict[str, int]
    """Losses by kind; empty: the capture is whole."""
    processes: dict[str, str]
    """Names by PID."""
    base: str
    """Base name of the raw files, as `blkparse -i` takes it."""

    @property
    def lossy(self) -> bool:
        """Whether events are missing."""
        return bool(self.lost)


class Backend(Protocol):
    """A way to trace one device."""

    @property
    def name(self) -> str: ...
    def start(self) -> None: ...
    def poll(self) -> None: ...
    def stop(self) -> Counter[str]: ...
    def processes(self) -> dict[int, str]: ...
    def abandon(self) -> None: ...


def possible() -> str | None:
    """Why traces cannot be captured on this host; None if they can.

    Depends on the host alone, not on whether someone traces at the moment.
    """
    reason = ftrace.possible()
    if reason is None or os.geteuid() != 0:
        return reason
    if shutil.which("blktrace") and Path("/sys/kernel/debug/block").is_dir() and not _locked_down():
        return None
    return f"{reason}, and blktrace does not work either"


def recover() -> None:
    """Undo what a killed capture left in the tracer; nothing happens while another one is at work."""
    if possible() is not None or not ftrace.RUN.exists():
        return
    try:
        held = ftrace.lock()
    except UserError:
        return
    with held:
        ftrace.recover()


def capture(device: str, command: Sequence[str], output: Path, *, cwd: Path | None = None) -> CaptureReport:
    """Run a command and keep the requests that reach a block device meanwhile, whoever makes them.

    Nothing is written to the device but what the command writes. The raw files (`trace.blktrace.CPU`), the command's
    stdout and stderr and `capture.json` go to the directory `output`. What the command leaves running in its session
    is ended. The tracer is restored whatever happens, after kill -9 by the next capture.

    Raises UserError when the device is no block device, the command is not to be found, `output` holds something,
    or someone else is tracing. A command that fails is no error: see `exit_status`.
    """
    name = _kernel_name(device)
    if not command or shutil.which(command[0], path=None) is None:
        raise UserError(f"command '{' '.join(command)}': there is no program '{''.join(command[:1])}'; check its name")
    if output.exists() and any(output.iterdir()):
        raise UserError(f"{output}: holds something already; name a new folder for the capture")
    output.mkdir(parents=True, exist_ok=True)
    with _signals_raise():
        backend, refused = _start(f"/dev/{name}", name, output / BASE_NAME)
        try:
            started = datetime.now(UTC)
            offset_ns = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            status, duration_s = _run(command, cwd, output, backend.poll)
            _settle(name)
            lost = backend.stop()
        except BaseException:
            backend.abandon()
            raise
    files = cpu_files(output / BASE_NAME)
    counts = count_events(list(files.values()))
    lost["sequence_gaps"] += counts.sequence_gaps
    lost["truncated_files"] += counts.truncated_files
    report = CaptureReport(
        backend=backend.name,
        blktrace_refused=refused,
        device=f"/dev/{name}",
        capacity_bytes=_number(SYS_BLOCK / name / "size") * SECTOR_BYTES,
        first_sector=_number(SYS_BLOCK / name / "start"),
        logical_block_bytes=_number(_disk(name) / "queue/logical_block_size"),
        command=list(command),
        exit_status=status,
        started=started.isoformat(timespec="milliseconds"),
        duration_s=duration_s,
        realtime_offset_ns=offset_ns,
        kernel=platform.release(),
        events=counts.events,
        lost={kind: count for kind, count in sorted(lost.items()) if count},
        processes={str(pid): text for pid, text in sorted(backend.processes().items())},
        base=BASE_NAME,
    )
    (output / REPORT_NAME).write_text(json.dumps(asdict(report), indent=1) + "\n", encoding="utf-8")
    return report


def _start(device: str, name: str, base: Path) -> tuple[Backend, str | None]:
    """The first backend that works, and why blktrace is not it."""
    first = Blktrace(device, base)
    try:
        first.start()
        return first, None
    except RefusedError as refused:
        reason = str(refused)
    for path in base.parent.glob(f"{base.name}.blktrace.*"):
        path.unlink()
    if (impossible := ftrace.possible()) is not None:
        raise UserError(f"{device} cannot be traced: {reason}; {impossible}")
    second = Ftrace(SYS_BLOCK / name / "trace", base)
    second.start()
    return second, reason


def _run(command: Sequence[str], cwd: Path | None, output: Path, poll: Callable[[], None]) -> tuple[int, float]:
    """Exit status and duration in seconds; whatever happens, nothing of the command's session is left running."""
    with (output / "stdout").open("wb") as out, (output / "stderr").open("wb") as err:
        started_s = time.monotonic()
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *command],
            cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
        )  # fmt: skip
        descriptor = os.pidfd_open(process.pid)
        try:
            waiting = select.poll()
            waiting.register(descriptor, select.POLLIN)
            while not waiting.poll(POLL_MS):
                poll()
            ended_s = time.monotonic()
        finally:
            os.close(descriptor)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return process.returncode, ended_s - started_s


def _settle(name: str) -> None:
    """Wait for the requests in flight: a trace that ends before their completion would lack it."""
    deadline_s = time.monotonic() + SETTLE_S
    inflight = SYS_BLOCK / name / "inflight"
    while time.monotonic() < deadline_s and any(map(int, inflight.read_text().split())):
        time.sleep(0.005)


@contextmanager
def _signals_raise() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the process through its `finally` clauses, as SIGINT does anyway.

    Only a main thread can do that; elsewhere the journal is what is left.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before: dict[int, Any] = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _kernel_name(device: str) -> str:
    path = Path(os.path.realpath(device))
    if not path.is_block_device():
        raise UserError(f"{device}: is no block device; run lsblk to see what there is")
    return path.name


def _disk(name: str) -> Path:
    path = (SYS_BLOCK / name).resolve()
    return path.parent if (path / "partition").exists() else path


def _number(path: Path) -> int:
    return int(path.read_text()) if path.exists() else 0


def _locked_down() -> bool:
    """Whether the kernel refuses debugfs' relay files (kernel_lockdown(7))."""
    path = Path("/sys/kernel/security/lockdown")
    return path.exists() and "[none]" not in path.read_text()
