"""Derive one trace from another, batch by batch, with provenance."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from drivelab.trace.derive.columns import ordered
from drivelab.trace.derive.lineage import derived, source_facts
from drivelab.trace.derive.output import refuse_nothing, written
from drivelab.trace.outputs import refuse_source
from drivelab.trace.schema import TraceFile, open_trace


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
        with written(output, [source]) as gatherer:
            for batch in ordered(trace.batches(), source):
                gatherer.add(step.apply(batch))
            refuse_nothing(gatherer.rows, str(source), step.nothing())
            facts = source_facts(source, trace.provenance, trace.rows)
            entry = {"step": step.name, **step.facts(), "requests": gatherer.rows, "source": facts}
            gatherer.finish(derived(trace.provenance, entry, step.changes(trace.provenance)))
    return entry
