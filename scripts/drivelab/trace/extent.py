"""Measure a trace's duration and the bytes it writes and reads, before a replay."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc

from drivelab.trace.schema import open_trace

_COLUMNS = ("queue_ns", "complete_ns", "operation", "length_bytes")


def extent(path: Path) -> tuple[float, int, int]:
    """Return duration in s, bytes written and bytes read.

    The duration is from the first queueing to the last queueing or completion. Raises UserError as
    drivelab.trace.schema.open_trace does.
    """
    first_ns: int | None = None
    last_ns = 0
    moved_bytes = {"write": 0, "read": 0}
    with open_trace(path) as trace:
        for batch in trace.batches(_COLUMNS):
            queue_ns, complete_ns = batch["queue_ns"], batch["complete_ns"]
            first_ns = queue_ns[0].as_py() if first_ns is None else first_ns
            last_ns = max(last_ns, queue_ns[-1].as_py(), pc.max(complete_ns).as_py() or 0)
            operation = batch["operation"].cast("string")
            for name in moved_bytes:
                chosen = pc.if_else(pc.equal(operation, name), batch["length_bytes"], 0)
                moved_bytes[name] += pc.sum(chosen).as_py()
    return (last_ns - (first_ns or 0)) / 1e9, moved_bytes["write"], moved_bytes["read"]
