"""One derivation of one trace: read, changed batch by batch, written with its provenance."""

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
    """What happens to a trace; used once."""

    name: str

    def begin(self, trace: TraceFile, path: Path) -> None:
        """Look at the whole before the first batch; raises UserError when the trace does not suit."""

    def apply(self, requests: pa.RecordBatch) -> pa.RecordBatch:
        """What becomes of a batch that holds something; batches come in their order."""

    def facts(self) -> dict[str, Any]:
        """Parameters and counts, JSON-able."""

    def changes(self, provenance: Mapping[str, Any]) -> dict[str, Any]:
        """Keys of the provenance that differ; None takes one away."""

    def nothing(self) -> str:
        """Why nothing may be left."""


def derive(source: Path, output: Path, step: Step) -> dict[str, Any]:
    """Derive a trace from another in bounded memory; returns the entry of `derived`.

    Raises UserError when the source is no trace or damaged, the output is the source or cannot be written, or nothing
    is left; then there is no output.
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
