"""Repeat a trace: for a set that writes as much as a long benchmark, from a short trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.trace.derive.groups import ordered
from drivelab.trace.derive.merge_sources import look, place_offsets, place_times
from drivelab.trace.derive.output import derived, refuse_nothing, source_facts, written
from drivelab.trace.parquet_schema import extent, open_trace
from drivelab.trace.records import refuse_source

MOST = 100_000
"""Most repetitions: each has a few bytes in memory while the trace is written."""


def repeat(
    path: Path, output: Path, *, times: int | None = None, written_bytes: int | None = None, place: str = "side-by-side"
) -> dict[str, Any]:
    """Write a trace several times in succession, in bounded memory; return the entry of `derived`.

    Give `times`, or the least volume `written_bytes` of all repetitions. Each begins when the one before has ended.
    `place` is as in `merge`: `side-by-side` puts each behind the device of the one before, so that it writes to other
    blocks. Raises UserError for an unsuitable trace or number.
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
    with open_trace(path) as trace, written(output, [path]) as gatherer:
        once = look(path, trace)
        sources = [replace(once) for _ in range(times)]
        place_times(sources, "start")
        place_offsets(sources, place)
        span_ns = round(duration_s * 1e9)
        for number, source in enumerate(sources):
            source.shift_ns = number * (span_ns + 1)
        for source in sources:
            for batch in ordered(trace.batches(), path):
                gatherer.add(source.moved(batch))
        refuse_nothing(gatherer.rows, str(path), "the trace has no request")
        facts = source_facts(path, trace.provenance, trace.rows)
        entry = {
            "step": "repeat",
            "times": times,
            "place": place,
            "written_bytes": times * writes,
            "requests": gatherer.rows,
            "source": facts,
        }
        capacity = trace.provenance.get("capacity_bytes")
        apart = {"capacity_bytes": capacity * times} if capacity and place == "side-by-side" else {}
        gatherer.finish(derived(trace.provenance, entry, apart))
    return entry
