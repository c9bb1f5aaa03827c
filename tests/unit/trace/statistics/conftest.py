"""Small traces, and simple reference implementations of their statistics."""

from __future__ import annotations

import math
import random
import sys
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pandas as pd
import pyarrow as pa
import pytest
from whole_traces import write_trace

from drivelab.trace import parquet_schema
from drivelab.trace.statistics.count import count

Rows = list[dict[str, Any]]
BLOCK = 4096


@pytest.fixture(scope="session")
def model() -> ModuleType:
    """Return this module with its functions."""
    return sys.modules[__name__]


def row(queue_ns: int, operation: str = "read", offset: int = 0, length: int = BLOCK, **more: Any) -> dict[str, Any]:
    """Return a request with as few known values as possible."""
    plain = {"dispatch_ns": None, "complete_ns": None, "error": 0, "dispatch_id": None, "pieces": 1, "requeues": 0}
    place = {"queue_ns": queue_ns, "operation": operation, "offset_bytes": offset, "length_bytes": length}
    origin = {"process": "", "pid": -1, "cpu": -1}
    return {**dict.fromkeys(parquet_schema.FLAGS, False), **plain, **origin, **place, **more}


def traces(dice: random.Random, blocks: int = 40) -> Rows:
    """Make up to 60 close requests with ties, overlaps, merges and missing events."""

    def unknown_or(most: int) -> int | None:
        return dice.choice((None, None, 0, 1, dice.randint(0, most), dice.randint(0, most), most))

    rows: Rows = []
    now = dice.choice([0, 7])
    base = dice.choice([0, 1 << 40, (1 << 62) - (1 << 20)])
    for number in range(dice.choice((1, 2, dice.randint(1, 60), dice.randint(1, 60)))):
        now += dice.choice([0, 0, 1, 5, 300, 40_000, 2_000_000])
        operation = dice.choice(["read", "read", "write", "write", "flush", "discard", "write-zeroes"])
        offset = base + dice.randint(0, blocks) * dice.choice([BLOCK, 512])
        length = dice.choice([BLOCK, BLOCK, 512, 2 * BLOCK, 9 * BLOCK, 0])
        if operation == "flush":
            offset = length = 0
        dispatch, complete = unknown_or(50_000), unknown_or(3_000_000)
        request = row(now, operation, offset, length)
        request["dispatch_ns"] = None if dispatch is None else now + dispatch
        request["complete_ns"] = None if complete is None else now + (dispatch or 0) + complete
        request["dispatch_id"] = None if dispatch is None else dice.choice((None, number))
        if rows and dispatch is not None and dice.random() < 0.5:  # merged with the one before, which still waits
            first = rows[-1]
            if first["dispatch_id"] is not None and first["dispatch_ns"] >= now:
                request |= {name: first[name] for name in ("dispatch_ns", "complete_ns", "dispatch_id")}
        request |= {"error": dice.choice([0, 0, 0, 5]), "pieces": dice.choice([1, 1, 2])}
        rows.append(request)
    return rows


def table(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist(rows, parquet_schema.REQUESTS)


def counted(rows: Rows, batch_rows: int = 1 << 18, **provenance: Any) -> dict[str, pd.DataFrame]:
    """Write a trace, read it in batches of `batch_rows`, and return its tables."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(parquet_schema, "BATCH_ROWS", batch_rows):
        path = Path(folder) / "t.parquet"
        write_trace(table(rows), provenance, path)
        return count(path, "t")


def blocks(request: dict[str, Any], size: int = BLOCK) -> range:
    """Return the blocks that a read or write touches."""
    if request["operation"] not in ("read", "write") or not request["length_bytes"]:
        return range(0)
    return range(request["offset_bytes"] // size, -(-(request["offset_bytes"] + request["length_bytes"]) // size))


def footprint(rows: Rows, *operations: str, size: int = BLOCK) -> int:
    return size * len(
        {block for request in rows if request["operation"] in operations for block in blocks(request, size)}
    )


def sequential(rows: Rows, window: int) -> list[bool]:
    """Return which requests start at one of their direction's last `window` ends."""
    ends: dict[str, list[int]] = {"read": [], "write": []}
    flags = []
    for request in rows:
        moves = bool(blocks(request))
        flags.append(moves and request["offset_bytes"] in ends[request["operation"]][-window:])
        if moves:
            ends[request["operation"]].append(request["offset_bytes"] + request["length_bytes"])
    return flags


def end_ns(rows: Rows) -> int:
    return max(max(request["queue_ns"], request["complete_ns"] or 0) for request in rows)


def dispatched(rows: Rows) -> list[tuple[int, int]]:
    """Return (begin, end) of each dispatch, merged requests once."""
    spans: dict[Any, tuple[int, int]] = {}
    for number, request in enumerate(rows):
        if request["dispatch_ns"] is not None and request["complete_ns"] is not None:
            key = ("alone", number) if request["dispatch_id"] is None else ("merged", request["dispatch_id"])
            spans[key] = (request["dispatch_ns"], request["complete_ns"])
    return list(spans.values())


def depth_at(spans: list[tuple[int, int]], at: int) -> int:
    return sum(begin <= at < end for begin, end in spans)


def time_at_depths(spans: list[tuple[int, int]], begin: int, end: int) -> Counter[int]:
    """Return the time at each depth between two instants."""
    instants = sorted({begin, end, *(t for span in spans for t in span if begin < t < end)})
    times: Counter[int] = Counter()
    for low, high in pairwise(instants):
        times[depth_at(spans, low)] += high - low
    return times


def nearest_rank(values: list[int], percent: float) -> int:
    return sorted(values)[math.ceil(percent / 100 * len(values)) - 1]
