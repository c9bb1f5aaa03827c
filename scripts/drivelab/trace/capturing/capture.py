"""Capture the block requests of a command."""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from drivelab.core.errors import UserError
from drivelab.core.termination import deferred
from drivelab.trace.capturing import blktrace, guardian, tracer
from drivelab.trace.capturing import command as running
from drivelab.trace.capturing import disk as disks
from drivelab.trace.capturing.blktrace import Blktrace, RefusedError
from drivelab.trace.capturing.capture_report import REPORT_NAME, CaptureReport, Counts, counted
from drivelab.trace.capturing.disk import Disk
from drivelab.trace.capturing.ftrace import Ftrace
from drivelab.trace.capturing.guardian import Guardian

BASE_NAME = "trace"


def possible() -> str | None:
    """Return why traces cannot be captured on this host, or None.

    The answer depends on the host only, not on tracers that are active now.
    """
    reason = tracer.possible()
    if reason is None or os.geteuid() != 0:
        return reason
    # In lockdown the kernel refuses debugfs' relay files (kernel_lockdown(7)).
    lockdown = Path("/sys/kernel/security/lockdown")
    refused = lockdown.exists() and "[none]" not in lockdown.read_text()
    if shutil.which("blktrace") and blktrace.DEBUG_BLOCK.is_dir() and not refused:
        return None
    return f"{reason}, and blktrace does not work either"


def recover() -> None:
    """Clean up in the kernel after killed captures, unless a capture is active."""
    with suppress(UserError):
        blktrace.recover()
    if tracer.possible() is None:
        with suppress(UserError):
            guardian.recover_tracer()


def capture(
    device: str,
    command: Sequence[str],
    output: Path,
    *,
    cwd: Path | None = None,
    backend: str | None = None,
    guard: Guardian | None = None,
) -> CaptureReport:
    """Run a command and record all requests that reach a block device meanwhile.

    Requests of other processes are recorded too. Only the command writes to the device. The raw files
    (`trace.blktrace.CPU`), `capture.json`, and the command's stdout and stderr go to `output`. Processes that the
    command leaves in its session are killed. The tracer is always restored: after kill -9 by a guardian process, and if
    that is killed too, by the next capture. `backend` is `blktrace` or `ftrace`; None is the first that works. `guard`
    is the caller's own guardian, if any.

    Raises UserError when `device` is not a block device, the command is not found, `output` is not empty or is on the
    device, or another tracer is active. A failed command raises no error: see `exit_status`. A loss raises no error
    either: see `lost`.
    """
    disk = disks.find(device)
    if os.geteuid() != 0:
        raise UserError("tracing needs root; run drivelab with sudo")
    if not command or shutil.which(command[0]) is None:
        raise UserError(f"command '{' '.join(command)}': program '{''.join(command[:1])}' is not found; check its name")
    _prepare(output, disk)
    with (
        _removed_when(KeyboardInterrupt, output),
        nullcontext(guard) if guard else guardian.watch() as guard,
    ):
        with _removed_when(UserError, output):
            tracing, refused = _start(disk, output / BASE_NAME, backend)
        try:
            facts, completed = disk.facts(), -disk.completed()
            started = datetime.now(UTC)
            offset_ns = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            outcome = running.run(
                command, cwd, output, tracing.poll, tracing.interval_s, guard.session, guard.environment
            )
            disk.settle()
            changed = disk.facts() != facts
            completed += disk.completed()
            lost = tracing.stop()
        except BaseException:
            with deferred():
                tracing.abandon()
            raise
    counts = counted(output / BASE_NAME)
    doubts = _doubts(disk, counts, completed, changed)
    losses = lost + Counter(counts.lost) + Counter({kind: count for kind, (count, _) in doubts.items()})
    report = CaptureReport(
        backend=tracing.name,
        blktrace_refused=refused,
        device=disk.device,
        **{name: value for name, value in asdict(facts).items() if name != "attached"},
        command=list(command),
        started=started.isoformat(timespec="milliseconds"),
        **asdict(outcome),
        realtime_offset_ns=offset_ns,
        kernel=platform.release(),
        events=counts.events,
        events_per_s=counts.events / outcome.duration_s,
        cpus=sorted(counts.by_cpu),
        events_by_cpu={str(cpu): events for cpu, events in sorted(counts.by_cpu.items())},
        device_requests=max(completed, 0),
        cost=tracing.cost(),
        lost=dict(sorted(losses.items())),
        processes={str(pid): text for pid, text in sorted(tracing.processes.items())},
        base=BASE_NAME,
        remarks=[*tracing.remarks, *(text for _, text in doubts.values())],
    )
    (output / REPORT_NAME).write_text(json.dumps(asdict(report), indent=1) + "\n", encoding="utf-8")
    return report


def _prepare(output: Path, disk: Disk) -> None:
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UserError(f"{output}: is not empty; name a new folder for the capture")
    output.mkdir(parents=True, exist_ok=True)
    if disk.carries(output):
        output.rmdir()
        raise UserError(
            f"{output}: is on {disk.device}, so the capture would trace its own writes; "
            "name a folder on another drive or in memory (/dev/shm)"
        )


@contextmanager
def _removed_when(errors: type[BaseException] | tuple[type[BaseException], ...], output: Path) -> Iterator[None]:
    """Remove a capture that failed to start or was interrupted. Its files would block the next capture."""
    try:
        yield
    except errors:
        shutil.rmtree(output)
        raise


def _start(disk: Disk, base: Path, backend: str | None) -> tuple[Blktrace | Ftrace, str | None]:
    """Return the first backend that works, and why it is not blktrace."""
    tracer.lock().close()  # report another drivelab process as such
    reason = "blktrace was not requested"
    if backend != "ftrace":
        tracer.refuse_foreign(disk.trace, own_ring=False)
        first = Blktrace(disk, base)
        try:
            first.start()
            return first, None
        except RefusedError as refused:
            reason = str(refused)
        for path in base.parent.glob(f"{base.name}.blktrace.*"):
            path.unlink()
    impossible = "remove --backend to try ftrace" if backend == "blktrace" else tracer.possible()
    if impossible is not None:
        raise UserError(f"{disk.device} cannot be traced: {impossible} ({reason})")
    second = Ftrace(disk, base)
    second.start()
    return second, reason


def _doubts(disk: Disk, counts: Counts, completed: int, changed: bool) -> dict[str, tuple[int, str]]:
    """Return losses that the device's counters show, each with a sentence."""
    if changed:
        return {"device_changed": (1, f"{disk.device} disappeared, or was resized or attached again meanwhile")}
    if completed > 0 and counts.events == 0:
        text = f"{disk.device} completed {completed} requests, but the trace has none: the device was not traced"
        return {"not_traced": (completed, text)}
    missing = completed - counts.completions
    if missing > 0:
        text = f"{disk.device} completed {completed} requests by its counters, but the trace has {counts.completions}"
        return {"completions_missing": (missing, text)}
    return {}
