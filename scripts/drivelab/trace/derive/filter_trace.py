"""Write a trace that is derived from another: never over its source, and no file without requests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.trace.derive.filter import Facts, Filter, changed, show_ns
from drivelab.trace.parquet_schema import TraceWriter, open_trace, row_groups
from drivelab.trace.records import refuse_source, writable
from drivelab.trace.trace_catalogue import sha256_of

_OF_THE_SOURCE = (
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


def filter_trace(source: Path, output: Path, chosen: Filter) -> Facts:
    """Derive a trace from another in bounded memory; return the entry of `derived`.

    Raises UserError and writes no output when the source is not a trace or is damaged, the output is the source or
    cannot be written, the filter is contradictory or does not fit the trace, or no request is left.
    """
    steps = chosen.steps
    refuse_source(output, [source])
    with open_trace(source, several=chosen.volume is not None) as trace:
        facts: Facts = {}
        changes: Facts = {}
        batches = changed(trace, source, chosen, facts, changes)
        with writable(output), TraceWriter(output) as writer:
            for table in row_groups(batches):
                # Encode again, or names of removed processes would stay in the file.
                names = table["process"].combine_chunks().dictionary_decode().dictionary_encode()
                writer.write(table.set_column(table.schema.get_field_index("process"), "process", names))
            if not writer.rows:
                raise UserError(f"{source}: no request is left: {_why_none(facts)}; no file was written")
            known = {key: trace.provenance[key] for key in (*_IDENTITY, *_OF_THE_SOURCE) if key in trace.provenance}
            known |= {"file": source.name, "sha256": sha256_of(source), "requests": trace.rows}
            entry = {"step": ", ".join(steps), **facts, "requests": writer.rows, "source": known}
            kept = {key: value for key, value in trace.provenance.items() if key not in ("format", *_OF_THE_SOURCE)}
            # Lost and unmatched events stay listed: they may belong to the part that is left.
            about = {**kept, **changes, "derived": [*trace.provenance.get("derived", []), entry]}
            writer.finish({key: value for key, value in about.items() if value is not None})
    return entry


def _why_none(facts: Mapping[str, Any]) -> str:
    absent = [name for name, count in facts.get("found", {}).items() if not count]
    if absent:
        return f"it has no request of {', '.join(absent)}"
    if "last_queued_ns" in facts:
        return f"none was queued between the given times, and the last at {show_ns(facts['last_queued_ns'])}"
    return "none matches all criteria" if "found" in facts else "the trace has no request"
