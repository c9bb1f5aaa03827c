"""What a capture says of itself."""

from __future__ import annotations

from dataclasses import dataclass, field

REPORT_NAME = "capture.json"
LOSSES = {
    "overrun": "the ring was full and old events were written over",
    "commit_overrun": "events were nested too deep for the ring",
    "dropped_events": "the ring was full and new events were dropped",
    "entries": "events were left in the ring when the capture ended",
    "missed": "pages of the ring say that events before them are missing",
    "read_by_others": "another process read events out of the ring",
    "sequence_gaps": "the events' numbers have gaps",
    "truncated_files": "a file ends within an event",
    "start": "the trace began after the command had",
    "end": "the trace ended before the command had",
    "blktrace_failed": "blktrace did not end well",
    "tracer_changed": "someone else changed the tracer meanwhile",
    "device_changed": "the device went away or was attached anew meanwhile",
    "not_traced": "the device completed requests, the trace has none of them",
    "completions_missing": "the device completed more requests than the trace has",
}
"""Kinds of losses, in words."""


@dataclass(frozen=True)
class Cost:
    """What the reading of the events took while the command ran, as far as that can be known.

    The kernel's own share, making the events, cannot be told from the command's work: tests/benchmarks/capture_cost.py
    measures both together.
    """

    reader_cpu_s: float
    """CPU time of whatever read the events, user and system."""
    drains: int | None
    """How often rings were emptied while the command ran; None where blktrace does it by itself."""
    buffer_fill_max: float | None
    """Fullest state of a CPU's ring that was seen, as a share; None for blktrace, which does not tell."""
    buffer_bytes_per_cpu: int


@dataclass(frozen=True)
class Counts:
    """Events in the files of a capture."""

    by_cpu: dict[int, int]
    completions: int
    """Of requests with data."""
    lost: dict[str, int]
    """Losses that the files themselves show, by kind."""

    @property
    def events(self) -> int:
        """All of them."""
        return sum(self.by_cpu.values())


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
    """From the start of the command to its end, under tracing: an application-based benchmark's result."""
    user_s: float
    system_s: float
    max_rss_bytes: int | None
    """Of the command and its children, the largest process's memory; drivelab.trace.capturing.command.Outcome."""
    realtime_offset_ns: int
    """What to add to the times of raw records for UTC since 1970."""
    kernel: str
    events: int
    events_per_s: float
    cpus: list[int]
    """Every CPU that has a file, so that a missing one is noticed."""
    events_by_cpu: dict[str, int]
    device_requests: int
    """Requests with data that the device completed meanwhile by its own counters."""
    cost: Cost
    lost: dict[str, int]
    """Losses by kind (see LOSSES); empty: the capture is whole."""
    processes: dict[str, str]
    """Names by PID."""
    base: str
    """Base name of the raw files, as `blkparse -i` takes it."""
    remarks: list[str] = field(default_factory=list)
    """What the losses are about, in sentences."""

    @property
    def lossy(self) -> bool:
        """Whether events are missing."""
        return bool(self.lost)


def counted_completions(data: int, empty: int, empty_queued: int) -> int:
    """Completions as a device's own counters have them, from those in a trace with and without data.

    The kernel counts an empty flush as a write, and a write with a flush sequence once although it has two completions
    (blk_account_io_done in block/blk-mq.c, blk_flush_restore_request in block/blk-flush.c).
    """
    return data + min(empty, empty_queued)
