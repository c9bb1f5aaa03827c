"""Cells of a loop that are made of a trace's I/O streams, after SNIA's Real World Storage Workload PTS.

A stream is reads or writes of one size, random or sequential (drivelab.trace.statistics.streams). Which a trace has is
known only when it is there, so a plan says how to choose them, and this module chooses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drivelab.errors import UserError
from drivelab.plan.cell import COMPOSITE, Cell

_OF_A_STREAM = ["operation", "length_bytes", "sequential"]


def cells_of_trace(streams: Mapping[str, Any], trace: Path, logical_block_bytes: int) -> list[dict[str, Any]]:
    """Cells of a loop, as a plan has them for other loops; `streams` is what the loop says in a plan.

    One composite, or one cell for each stream, the most frequent first; all at each number of threads and depth.
    Raises UserError when the file is no sound trace, or no request of it reads or writes.
    """
    found = most_frequent(trace, int(streams["most"]), logical_block_bytes)
    each = [_composite(found)] if streams["kind"] == COMPOSITE else [_of_one(one) for one in found]
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
        for workload in each
    ]


def most_frequent(trace: Path, most: int, logical_block_bytes: int) -> list[dict[str, Any]]:
    """Up to `most` streams, as a composite cell has them: the most frequent first, their shares add up to 1.

    Lengths are rounded up to the logical block of the drive, and streams that are then alike count as one.
    """
    from drivelab.trace.schema import open_trace  # with pyarrow, which a mere plan must not wait for
    from drivelab.trace.statistics import survey
    from drivelab.trace.statistics.streams import streams

    with open_trace(trace) as file:
        frame = streams(survey.survey(file.batches(survey.COLUMNS), file.rows).lengths)
    if frame.empty:
        raise UserError(f"{trace}: no request of it reads or writes, so it has no streams; choose another trace")
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
    reads = 100 * sum(one["share"] for one in streams if one["operation"] == "read")
    kinds = {one["operation"] for one in streams}
    return {
        "pattern": COMPOSITE,
        "read_share": min(max(round(reads), 1), 99) if len(kinds) == 2 else 100 if kinds == {"read"} else 0,
        "block_size_bytes": round(sum(one["share"] * one["block_size_bytes"] for one in streams)),
        "streams": tuple(streams),
    }


def _of_one(stream: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "pattern": stream["pattern"],
        "read_share": 100 if stream["operation"] == "read" else 0,
        "block_size_bytes": stream["block_size_bytes"],
    }
