"""State of the slow decoder: rows of the table, and their queued or in-flight parts."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from reference_records import Event


@dataclass(eq=False)
class Row:
    event: Event
    process: str
    left: int
    """Incomplete bytes."""
    dispatch_ns: int | None = None
    complete_ns: int | None = None
    dispatch_id: int | None = None
    error: int = 0
    pieces: int = 0
    requeues: int = 0

    def finish(self, length: int, event: Event) -> None:
        self.left -= length
        self.error = self.error or event.error
        if self.left == 0:
            self.complete_ns = event.time_ns

    def columns(self) -> dict[str, Any]:
        event, flags = self.event, self.event.is_
        empty = event.length == 0
        operation = "flush" if empty and "flush" in flags and event.direction in ("read", "write") else event.direction
        return {
            "queue_ns": event.time_ns, "dispatch_ns": self.dispatch_ns, "complete_ns": self.complete_ns,
            "operation": operation, **{name: name in flags for name in ("sync", "meta", "fua", "readahead")},
            "preflush": "flush" in flags and not empty, "offset_bytes": 0 if empty else event.begin,
            "length_bytes": event.length, "process": self.process, "pid": event.pid, "cpu": event.cpu,
            "error": self.error, "dispatch_id": self.dispatch_id, "pieces": self.pieces, "requeues": self.requeues,
        }  # fmt: skip


@dataclass(eq=False)
class Segment:
    """Part of a row's range, queued or in flight in a dispatch."""

    row: Row
    begin: int
    end: int
    merged: bool = False
    number: int = field(default_factory=itertools.count().__next__)
    """Sequence number in the order of queueing or requeueing."""
    first: int = 0
    """Start at dispatch; a partial completion advances `begin`."""


@dataclass
class Dispatch:
    direction: str
    begin: int
    end: int
    members: list[Segment]


@dataclass
class SequenceEnd:
    """A flush or FUA write with complete data, whose sequence may still end (block/blk-flush.c)."""

    direction: str
    begin: int
    flags: set[str]
    row: Row
