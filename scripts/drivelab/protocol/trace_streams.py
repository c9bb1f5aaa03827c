"""Derive a loop's cells from a trace's I/O streams, after SNIA's RWSW PTS.

A stream is reads or writes of one size, random or sequential (drivelab.trace.statistics.streams). A trace may not exist
when the plan is made. The plan therefore says how to choose streams, and this module chooses them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drivelab.errors import UserError
from drivelab.plan.cell import COMPOSITE, Cell

_OF_A_STREAM = ["operation", "length_bytes", "sequential"]


def cells_of_trace(streams: Mapping[str, Any], trace: Path, logical_block_bytes: int) -> list[dict[str, Any]]:
    """Return a loop's cells, in the form of a plan.

    `streams` is the field of the plan's loop. They are one composite, or one cell for each stream, the most frequent
    first, at each number of threads and queue depth. Raises UserError if the file is not a valid trace, or if no
    request reads or writes.
    """
    chosen = most_frequent(trace, int(streams["most"]), logical_block_bytes)
    workloads = [_composite(chosen)] if streams["kind"] == COMPOSITE else [_single(stream) for stream in chosen]
    return [
        Cell(
            **workload,
            threads=threads,
            queue_depth=queue_depth,
            runtime_s=streams["runtime_s"],
            range_share=streams["range_share"],
        ).to_mapping()
        for threads in streams["threads"]
        for queue_depth in streams["queue_depth"]
        for workload in workloads
    ]


def most_frequent(trace: Path, most: int, logical_block_bytes: int) -> list[dict[str, Any]]:
    """Return up to `most` streams for a composite cell, most frequent first.

    Shares add up to 1. Lengths are rounded up to the drive's logical block; streams that then are equal are merged.
    """
    from drivelab.trace.schema import open_trace  # imports pyarrow, which is slow
    from drivelab.trace.statistics import survey
    from drivelab.trace.statistics.streams import streams

    with open_trace(trace) as file:
        frame = streams(survey.survey(file.batches(survey.COLUMNS), file.rows).lengths)
    if frame.empty:
        raise UserError(f"{trace}: no request reads or writes, so the trace has no streams; choose another trace")
    frame["length_bytes"] = -(-frame["length_bytes"] // logical_block_bytes) * logical_block_bytes
    frame = frame.groupby(_OF_A_STREAM, as_index=False)["requests"].sum()
    frame = frame.sort_values(["requests", *_OF_A_STREAM], ascending=[False, True, True, True]).head(most)
    total = int(frame["requests"].sum())
    return [
        {
            "operation": str(row.operation),
            "block_size_bytes": int(row.length_bytes),
            "pattern": "sequential" if row.sequential else "random",
            "share": int(row.requests) / total,
        }
        for row in frame.itertuples()
    ]


def _composite(streams: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    reads = 100 * sum(stream["share"] for stream in streams if stream["operation"] == "read")
    kinds = {stream["operation"] for stream in streams}
    return {
        "pattern": COMPOSITE,
        "read_share": min(max(round(reads), 1), 99) if len(kinds) == 2 else 100 if kinds == {"read"} else 0,
        "block_size_bytes": round(sum(stream["share"] * stream["block_size_bytes"] for stream in streams)),
        "streams": tuple(streams),
    }


def _single(stream: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "pattern": stream["pattern"],
        "read_share": 100 if stream["operation"] == "read" else 0,
        "block_size_bytes": stream["block_size_bytes"],
    }
