"""Repeat a trace until it writes as much as a long benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from drivelab.core.errors import UserError
from drivelab.trace.derive.groups import TIMES, added, ordered
from drivelab.trace.derive.output import derived, refuse_nothing, source_facts, written
from drivelab.trace.parquet_schema import TraceFile, extent, open_trace
from drivelab.trace.records import refuse_source
from drivelab.trace.statistics.batch import UNKNOWN, Batch

STEP = "repeat"
MOST = 100_000
"""Most repetitions."""


def repeat(path: Path, output: Path, *, times: int | None, written_bytes: int | None) -> dict[str, Any]:
    """Write a trace several times in succession, in bounded memory; return the entry of `derived`.

    Give `times`, or the least volume `written_bytes` of all repetitions. Each begins when the one before has ended, and
    lies behind the device of the one before, so that it writes to other blocks. If the trace does not record its
    device's capacity, all lie at the same place. Raises UserError for an unsuitable trace or number.
    """
    if (times is None) == (written_bytes is None):
        raise UserError("give either the number of repetitions (--times) or the volume to write (--written)")
    refuse_source(output, [path])
    duration_s, writes, _ = extent(path)
    if written_bytes is not None:
        if not writes:
            raise UserError(f"{path}: writes nothing, so no number of repetitions writes more; give --times")
        times = -(-written_bytes // writes)
    if times is None or not 1 <= times <= MOST:
        raise UserError(f"{path}: {times} repetitions are not possible; give 1 to {MOST}")
    with open_trace(path) as trace, written(output, path) as gatherer:
        capacity = trace.provenance.get("capacity_bytes")
        id_span = _check(trace, path, capacity)
        span_ns = round(duration_s * 1e9) + 1
        for number in range(times):
            for requests in ordered(trace.batches(), path):
                moved = added(added(requests, TIMES, number * span_ns), ["dispatch_id"], number * id_span)
                if number and capacity:
                    lengths = np.asarray(requests.column("length_bytes").to_numpy(zero_copy_only=False))
                    moved = added(moved, ["offset_bytes"], np.where(lengths > 0, number * capacity, 0))
                gatherer.add(moved)
        refuse_nothing(gatherer.rows, str(path), "the trace has no request")
        entry = {
            "step": STEP,
            "times": times,
            "shift_bytes": capacity or 0,
            "written_bytes": times * writes,
            "requests": gatherer.rows,
            "source": source_facts(path, trace.provenance, trace.rows),
        }
        gatherer.finish(derived(trace.provenance, entry, {"capacity_bytes": capacity * times} if capacity else {}))
    return entry


def _check(trace: TraceFile, path: Path, capacity: int | None) -> int:
    """Return by how much each repetition's dispatch numbers exceed those of the one before.

    Raises UserError if a request lies beyond the device.
    """
    ids = [0, -1]
    for requests in trace.batches(["queue_ns", "offset_bytes", "length_bytes", "dispatch_id"]):
        if not requests.num_rows:
            continue
        batch = Batch(requests)
        end_bytes = int(batch.end_bytes.max())
        if capacity and end_bytes > capacity:
            raise UserError(
                f"{path}: a request ends at byte {end_bytes}, beyond the device's {capacity}; decode or import the "
                "trace again"
            )
        known = batch.ints("dispatch_id")
        known = known[known != UNKNOWN]
        if known.size:
            least, most = int(known.min()), int(known.max())
            ids = [least, most] if ids[1] < ids[0] else [min(ids[0], least), max(ids[1], most)]
    return ids[1] - ids[0] + 1
