"""Write a derived trace: never over a source, and no file without requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from drivelab.core.errors import UserError
from drivelab.trace.derive.groups import ordered
from drivelab.trace.parquet_schema import BATCH_ROWS, REQUESTS, TraceFile, TraceWriter, open_trace
from drivelab.trace.records import refuse_source, writable
from drivelab.trace.trace_catalogue import sha256_of


class Gatherer:
    """Collect small parts and write them as whole row groups."""

    def __init__(self, writer: TraceWriter) -> None:
        self._writer = writer
        self._parts: list[pa.Table] = []
        self._waiting = 0
        self.rows = 0

    def add(self, requests: pa.RecordBatch | pa.Table) -> None:
        """Add rows, in `queue_ns` order."""
        table = pa.Table.from_batches([requests]) if isinstance(requests, pa.RecordBatch) else requests
        self.rows += table.num_rows
        while table.num_rows:
            room = BATCH_ROWS - self._waiting
            self._parts.append(table.slice(0, room))
            self._waiting += self._parts[-1].num_rows
            table = table.slice(room)
            if self._waiting == BATCH_ROWS:
                self._write()

    def finish(self, provenance: Mapping[str, Any]) -> None:
        """Write the rest and complete the file, as TraceWriter.finish."""
        if self._waiting:
            self._write()
        self._writer.finish(provenance)

    def _write(self) -> None:
        table = pa.concat_tables(self._parts).cast(REQUESTS).combine_chunks()
        self._parts, self._waiting = [], 0
        # Encode again, or names of removed processes would stay in the file.
        names = table.column("process").combine_chunks().dictionary_decode().dictionary_encode()
        self._writer.write(table.set_column(REQUESTS.get_field_index("process"), REQUESTS.field("process"), names))


@contextmanager
def written(output: Path, source: Path) -> Iterator[Gatherer]:
    """Open a derived trace for writing; call `finish` within the block.

    Raises UserError when the output is a source or cannot be written.
    """
    refuse_source(output, [source])
    with writable(output), TraceWriter(output) as writer:
        yield Gatherer(writer)


def refuse_nothing(rows: int, source: str, why: str) -> None:
    """Raise UserError when no request is left."""
    if not rows:
        raise UserError(f"{source}: no request is left: {why}; no file was written")


OF_THE_SOURCE = (
    "requests",
    "events",
    "events_by_action",
    "passthrough",
    "other_devices",
    "device_flushes",
    "duration_s",
)
"""Counts of the source. A derived trace lists them under its source, not as its own."""
_IDENTITY = ("name", "title", "application", "first_event", "capacity_bytes", "lost", "unmatched", "malformed")


def source_facts(path: Path, provenance: Mapping[str, Any], rows: int) -> dict[str, Any]:
    """Return file, SHA-256 and provenance of the source, for an entry of `derived`."""
    facts = {key: provenance[key] for key in (*_IDENTITY, *OF_THE_SOURCE) if key in provenance}
    return {**facts, "file": path.name, "sha256": sha256_of(path), "requests": rows}


def derived(
    provenance: Mapping[str, Any], entry: Mapping[str, Any], changes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a derived trace's provenance from its source's.

    Applies `changes` (None removes a key) and appends `entry` to `derived`. Lost and unmatched events of the source
    stay listed: they may belong to the part that is left.
    """
    kept = {key: value for key, value in provenance.items() if key != "format" and key not in OF_THE_SOURCE}
    result = {**kept, **(changes or {}), "derived": [*provenance.get("derived", []), dict(entry)]}
    return {key: value for key, value in result.items() if value is not None}


def follows_the_clock(provenance: Mapping[str, Any]) -> bool:
    """Return whether times follow the wall clock: not after idle time was removed."""
    return not any(step.get("step") == "drop-idle" and step.get("removed_ns") for step in provenance.get("derived", []))


class Step(Protocol):
    """One change of a trace; each object is used once."""

    name: str

    def begin(self, trace: TraceFile, path: Path) -> None:
        """Check the trace before the first batch; raise UserError if unsuitable."""

    def apply(self, requests: pa.RecordBatch) -> pa.RecordBatch:
        """Return the changed batch; batches are non-empty and in order."""

    def facts(self) -> dict[str, Any]:
        """Return parameters and counts, JSON-able."""

    def changes(self, provenance: Mapping[str, Any]) -> dict[str, Any]:
        """Return changed keys of the provenance; None removes a key."""

    def nothing(self) -> str:
        """Return why no request is left."""


def derive(source: Path, output: Path, step: Step) -> dict[str, Any]:
    """Derive a trace from another in bounded memory; return the entry of `derived`.

    Raises UserError and writes no output when the source is not a trace or is damaged, the output is the source or
    cannot be written, or no request is left.
    """
    refuse_source(output, [source])
    with open_trace(source) as trace:
        step.begin(trace, source)
        with written(output, source) as gatherer:
            for batch in ordered(trace.batches(), source):
                gatherer.add(step.apply(batch))
            refuse_nothing(gatherer.rows, str(source), step.nothing())
            facts = source_facts(source, trace.provenance, trace.rows)
            entry = {"step": step.name, **step.facts(), "requests": gatherer.rows, "source": facts}
            gatherer.finish(derived(trace.provenance, entry, step.changes(trace.provenance)))
    return entry
