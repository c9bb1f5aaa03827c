"""The report of a capture."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from drivelab.core.programs import process_state, stat_fields

REPORT_NAME = "capture.json"
LOSSES = {
    "overrun": "the ring was full and old events were overwritten",
    "commit_overrun": "events were nested too deep for the ring",
    "dropped_events": "the ring was full and new events were dropped",
    "entries": "events were left in the ring when the capture ended",
    "missed": "pages of the ring say that events before them are missing",
    "read_by_others": "another process read events out of the ring",
    "sequence_gaps": "the events' numbers have gaps",
    "truncated_files": "a file ends within an event",
    "start": "the trace began after the command",
    "end": "the trace ended before the command",
    "blktrace_failed": "blktrace failed",
    "tracer_changed": "another program changed the tracer during the capture",
    "device_changed": "the device disappeared or was attached again during the capture",
    "not_traced": "the device completed requests, but the trace has none",
    "completions_missing": "the device completed more requests than the trace has",
}
"""Kinds of losses, described."""


@dataclass(frozen=True)
class Cost:
    """Measurable cost of reading the events while the command ran.

    The kernel's cost of creating events cannot be separated from the command's work. benchmarks/capture_cost.py
    measures both together.
    """

    reader_cpu_s: float
    """CPU time of the reader of events, user and system."""
    drains: int | None
    """How often rings were emptied while the command ran; None for blktrace, which empties them itself."""
    buffer_fill_max: float | None
    """Highest observed fill share of a CPU's ring; None for blktrace, which does not report it."""
    buffer_bytes_per_cpu: int


@dataclass(frozen=True)
class Counts:
    """Events in the files of a capture."""

    by_cpu: dict[int, int]
    completions: int
    """Completions of requests with data."""
    lost: dict[str, int]
    """Losses visible in the files, by kind."""

    @property
    def events(self) -> int:
        """All events."""
        return sum(self.by_cpu.values())


@dataclass(frozen=True)
class Outcome:
    """How a command ended, and its usage with waited-for children (getrusage(2))."""

    exit_status: int
    """Exit status of the command; negative: the signal that killed it."""
    duration_s: float
    """Time from start to end of the command: the result of an application-based benchmark."""
    user_s: float
    system_s: float
    max_rss_bytes: int | None
    """Memory of the largest process; None if not above this process's own, which the kernel includes."""


@dataclass(frozen=True)
class CaptureReport(Outcome):
    """The report of a capture; stored beside the raw files as capture.json."""

    backend: str
    """`blktrace` or `ftrace`."""
    blktrace_refused: str | None
    """Why blktrace was not used."""
    device: str
    capacity_bytes: int
    first_sector: int
    """Start of the device on its disk (units of 512 bytes), 0 unless a partition; raw sectors count on the disk."""
    logical_block_bytes: int
    command: list[str]
    started: str
    """UTC, ISO 8601."""
    realtime_offset_ns: int
    """Offset from raw record times to UTC since 1970."""
    kernel: str
    events: int
    events_per_s: float
    cpus: list[int]
    """Every CPU with a file, to detect a missing file."""
    events_by_cpu: dict[str, int]
    device_requests: int
    """Requests with data that the device completed during the capture, by its own counters."""
    cost: Cost
    lost: dict[str, int]
    """Losses by kind (see LOSSES); empty: the capture is complete."""
    processes: dict[str, str]
    """Process names by PID."""
    base: str
    """Base name of the raw files, as for `blkparse -i`."""
    remarks: list[str] = field(default_factory=list)
    """Explanations of the losses, as sentences."""

    @property
    def lossy(self) -> bool:
        """Whether events are missing."""
        return bool(self.lost)


def counted(base: Path) -> Counts:
    """Count the events in the files `BASE.blktrace.CPU`; raise UserError if they are invalid.

    Completions are counted as the device counts them: an empty flush as a write, and a write with a flush sequence
    once, despite two completions (blk_account_io_done in block/blk-mq.c, blk_flush_restore_request in
    block/blk-flush.c).
    """
    from drivelab.trace.decoder import Decoder  # imports numpy, which a capture does not need while it runs
    from drivelab.trace.records import cpu_files

    files = {}
    for cpu, path in cpu_files(base).items():
        with Decoder([path]) as decoder:
            files[cpu] = decoder.finish()
    data, empty, queued = (
        sum(getattr(counts, name) for counts in files.values())
        for name in ("data_completions", "empty_completions", "empty_queued")
    )
    lost = {
        name: sum(getattr(counts, name) for counts in files.values()) for name in ("sequence_gaps", "truncated_files")
    }
    by_cpu = {cpu: counts.events for cpu, counts in files.items()}
    return Counts(by_cpu, data + min(empty, queued), {kind: count for kind, count in lost.items() if count})


MARK = "DRIVELAB_CAPTURE"
"""Environment variable of the traced command and its descendants."""
_ATTEMPTS = 100
_PAUSE_S = 0.02


def boot_id() -> str:
    """Return the boot ID; a reboot makes journals obsolete."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def started(pid: int) -> str:
    """Return a process's start in clock ticks since boot (proc_pid_stat(5)).

    This is field 22. Raises FileNotFoundError.
    """
    return stat_fields(pid)[19]


def alive(pid: int, start: str) -> bool:
    """Return whether that process runs; a zombie does not."""
    return str(process_state(pid)[1]) == start


def marked(mark: str) -> list[int]:
    """Return the running processes with this value of MARK in their environment."""
    variable = f"{MARK}={mark}".encode()
    return _processes(lambda pid: variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))


def end_session(session: int, mark: str | None) -> None:
    """Kill all processes of a session, in any process group, or with the mark."""
    for _ in range(_ATTEMPTS):
        left = set(_processes(lambda pid: process_state(pid)[0] != "X" and stat_fields(pid)[3] == str(session)))
        left |= set(marked(mark) if mark else ())
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE_S)


def _processes(chosen: Callable[[int], bool]) -> list[int]:
    """Return the chosen processes; one that ends meanwhile is none."""
    pids: list[int] = []
    for path in Path("/proc").glob("[0-9]*"):  # not */environ: glob raises ESRCH for a process that ends meanwhile
        with suppress(OSError):
            if chosen(int(path.name)):
                pids.append(int(path.name))
    return pids
