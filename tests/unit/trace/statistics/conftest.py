"""Small traces, and their statistics counted request by request, block by block, instant by instant."""

from __future__ import annotations

import math
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
from hypothesis import strategies as st

from drivelab.trace import schema
from drivelab.trace.statistics.count import count

Rows = list[dict[str, Any]]
BLOCK = 4096


@pytest.fixture(scope="session")
def made() -> ModuleType:
    """The functions of this module."""
    return sys.modules[__name__]


def row(queue_ns: int, operation: str = "read", offset: int = 0, length: int = BLOCK, **more: Any) -> dict[str, Any]:
    """A request that the trace knows as little of as possible."""
    plain = {"dispatch_ns": None, "complete_ns": None, "error": 0, "dispatch_id": None, "pieces": 1, "requeues": 0}
    place = {"queue_ns": queue_ns, "operation": operation, "offset_bytes": offset, "length_bytes": length}
    who = {"process": "", "pid": -1, "cpu": -1}
    return {**dict.fromkeys(schema.FLAGS, False), **plain, **who, **place, **more}


@st.composite
def traces(draw: st.DrawFn, blocks: int = 40) -> Rows:
    """Up to 60 requests close together in time and place: ties, overlaps, merges, missing events."""
    rows: Rows = []
    now = draw(st.sampled_from([0, 7]))
    base = draw(st.sampled_from([0, 1 << 40, (1 << 62) - (1 << 20)]))
    for number in range(draw(st.integers(1, 60))):
        now += draw(st.sampled_from([0, 0, 1, 5, 300, 40_000, 2_000_000]))
        operation = draw(st.sampled_from(["read", "read", "write", "write", "flush", "discard", "write-zeroes"]))
        offset = base + draw(st.integers(0, blocks)) * draw(st.sampled_from([BLOCK, 512]))
        length = draw(st.sampled_from([BLOCK, BLOCK, 512, 2 * BLOCK, 9 * BLOCK, 0]))
        if operation == "flush":
            offset = length = 0
        dispatch = draw(st.none() | st.integers(0, 50_000))
        complete = draw(st.none() | st.integers(0, 3_000_000))
        one = row(now, operation, offset, length)
        one["dispatch_ns"] = None if dispatch is None else now + dispatch
        one["complete_ns"] = None if complete is None else now + (dispatch or 0) + complete
        one["dispatch_id"] = None if dispatch is None else draw(st.none() | st.just(number))
        if rows and dispatch is not None and draw(st.booleans()):  # merged with an earlier one that still waits
            first = rows[-1]
            if first["dispatch_id"] is not None and first["dispatch_ns"] >= now:
                one |= {name: first[name] for name in ("dispatch_ns", "complete_ns", "dispatch_id")}
        one |= {"error": draw(st.sampled_from([0, 0, 0, 5])), "pieces": draw(st.sampled_from([1, 1, 2]))}
        rows.append(one)
    return rows


def table(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist(rows, schema.REQUESTS)


def counted(rows: Rows, batch_rows: int = 1 << 18, **provenance: Any) -> dict[str, pd.DataFrame]:
    """The tables of a trace that is written to a file and read in batches of `batch_rows`."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(schema, "BATCH_ROWS", batch_rows):
        path = Path(folder) / "t.parquet"
        schema.write_trace(table(rows), provenance, path)
        return count(path, "t")


def blocks(one: dict[str, Any], size: int = BLOCK) -> range:
    """Blocks that a read or write touches."""
    if one["operation"] not in ("read", "write") or not one["length_bytes"]:
        return range(0)
    return range(one["offset_bytes"] // size, -(-(one["offset_bytes"] + one["length_bytes"]) // size))


def footprint(rows: Rows, *operations: str, size: int = BLOCK) -> int:
    return size * len({block for one in rows if one["operation"] in operations for block in blocks(one, size)})


def sequential(rows: Rows, window: int) -> list[bool]:
    """By remembering the ends of the last `window` requests of each direction in a list."""
    ends: dict[str, list[int]] = {"read": [], "write": []}
    found = []
    for one in rows:
        moves = bool(blocks(one))
        found.append(moves and one["offset_bytes"] in ends[one["operation"]][-window:])
        if moves:
            ends[one["operation"]].append(one["offset_bytes"] + one["length_bytes"])
    return found


def pairs(rows: Rows) -> dict[str, list[int]]:
    """Times between consecutive accesses to the same block, by kind."""
    last: dict[int, tuple[str, int]] = {}
    found: dict[str, list[int]] = {}
    for one in rows:
        for block in blocks(one):
            if block in last:
                before, at = last[block]
                found.setdefault(f"{one['operation']} after {before}", []).append(one["queue_ns"] - at)
            last[block] = (one["operation"], one["queue_ns"])
    return found


def accesses(rows: Rows, *operations: str) -> Counter[int]:
    return Counter(block for one in rows if one["operation"] in operations for block in blocks(one))


def end_ns(rows: Rows) -> int:
    return max(max(one["queue_ns"], one["complete_ns"] or 0) for one in rows)


def dispatched(rows: Rows) -> list[tuple[int, int]]:
    """(begin, end) of each dispatch, merged requests once."""
    spans: dict[Any, tuple[int, int]] = {}
    for number, one in enumerate(rows):
        if one["dispatch_ns"] is not None and one["complete_ns"] is not None:
            key = ("alone", number) if one["dispatch_id"] is None else ("merged", one["dispatch_id"])
            spans[key] = (one["dispatch_ns"], one["complete_ns"])
    return list(spans.values())


def depth_at(spans: list[tuple[int, int]], at: int) -> int:
    return sum(begin <= at < end for begin, end in spans)


def time_at_depths(spans: list[tuple[int, int]], begin: int, end: int) -> Counter[int]:
    """Time spent at each depth between two instants."""
    instants = sorted({begin, end, *(t for span in spans for t in span if begin < t < end)})
    found: Counter[int] = Counter()
    for low, high in pairwise(instants):
        found[depth_at(spans, low)] += high - low
    return found


def nearest_rank(values: list[int], wanted: float) -> int:
    return sorted(values)[math.ceil(wanted / 100 * len(values)) - 1]
