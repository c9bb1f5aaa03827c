"""Decode events or captures in memory for tests."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from trace_files import Event, record_bytes
from whole_traces import read_trace

from drivelab.trace import records
from drivelab.trace.decode import decode

TIMESTAMP_NOTE = records.NOTIFY | 1


@dataclass(frozen=True)
class Decoded:
    """The decoder's output for a capture."""

    requests: pd.DataFrame
    summary: dict[str, Any]
    provenance: dict[str, Any]

    @property
    def unmatched(self) -> dict[str, int]:
        return dict(self.summary["unmatched"])

    @property
    def times(self) -> list[tuple[int, int | None, int | None]]:
        """Queue, dispatch and completion times of every request."""
        columns = ("queue_ns", "dispatch_ns", "complete_ns")
        rows = zip(*(self.requests[name].tolist() for name in columns), strict=True)
        return [tuple(None if pd.isna(value) else int(value) for value in row) for row in rows]  # type: ignore[misc]


def decoded_folder(source: Path, **options: Any) -> Decoded:
    """Decode a capture."""
    with tempfile.TemporaryDirectory() as scratch:
        summary = decode(source, Path(scratch) / "t.parquet", **options)
        table, provenance = read_trace(Path(scratch) / "t.parquet")
    return Decoded(table.to_pandas(), summary, provenance)


def decoded_events(*events: Event) -> Decoded:
    """Decode events of one CPU; a note at time 0 makes the requests' times equal to those of the events."""
    with tempfile.TemporaryDirectory() as folder:
        note = record_bytes((0, "Q", "R", 0, 0), action=TIMESTAMP_NOTE)
        data = note + b"".join(map(record_bytes, events))
        (Path(folder) / "trace.blktrace.0").write_bytes(data)
        return decoded_folder(Path(folder))
