"""Traces for tests: rows as tuples, files with batches of any size, traces from hypothesis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from whole_traces import write_trace

from drivelab.trace.parquet_schema import FLAGS, REQUESTS, open_trace

PROCESSES = ("", "db", "backup")


class Row(NamedTuple):
    """A request; all other columns have the values of a trace without that information."""

    queue_ns: int
    dispatch_ns: int | None = None
    complete_ns: int | None = None
    operation: str = "read"
    offset_bytes: int = 0
    length_bytes: int = 4096
    process: str = ""
    pid: int = -1
    dispatch_id: int | None = None
    flags: tuple[str, ...] = ()

    def later(self, by_ns: int) -> Row:
        moved = {
            name: None if value is None else value + by_ns
            for name, value in zip(self._fields[:3], self[:3], strict=True)
        }
        return self._replace(**moved)


def table(rows: Sequence[Row]) -> pa.Table:
    """Return the rows as a table in the schema REQUESTS."""
    columns: dict[str, Any] = {name: [getattr(row, name) for row in rows] for name in Row._fields if name != "flags"}
    columns |= {flag: [flag in row.flags for row in rows] for flag in FLAGS}
    columns |= {"cpu": [-1] * len(rows), "error": [0] * len(rows), "pieces": [1] * len(rows)}
    columns["requeues"] = [0] * len(rows)
    return pa.table(
        [
            pa.array(columns[field.name], field.type.value_type).dictionary_encode().cast(field.type)
            if pa.types.is_dictionary(field.type)
            else pa.array(columns[field.name], field.type)
            for field in REQUESTS
        ],
        schema=REQUESTS,
    )


def write(path: Path, rows: Sequence[Row], provenance: Mapping[str, Any] | None = None) -> Path:
    """Write a trace of rows."""
    write_trace(table(rows), {"lost": {}, "unmatched": {}, **(provenance or {})}, path)
    return path


def read(path: Path) -> tuple[list[Row], dict[str, Any]]:
    """Return rows and provenance of a trace file."""
    with open_trace(path) as trace:
        records = pa.Table.from_batches(trace.batches(), REQUESTS).to_pylist()
        rows = [
            Row(
                **{name: record[name] for name in Row._fields if name != "flags"},
                flags=tuple(flag for flag in FLAGS if record[flag]),
            )
            for record in records
        ]
        return rows, trace.provenance


@contextmanager
def batches_of(rows: int) -> Iterator[None]:
    """Read and write traces in batches of `rows` rows within the block."""
    with patch("drivelab.trace.parquet_schema.BATCH_ROWS", rows), patch("drivelab.replay.prepare._ROWS", rows):
        yield


@st.composite
def made_up(draw: st.DrawFn, *, most: int = 14, least: int = 1, complete: bool | None = None) -> list[Row]:
    """Draw rows of a valid trace with gaps, ties, overlaps, merges and unknown times."""
    steps = draw(st.lists(st.sampled_from([0, 0, 1, 3, 10, 40]), min_size=least, max_size=most))
    rows, now_ns = [], 0
    for step in steps:
        now_ns += step
        dispatch_ns = now_ns + draw(st.integers(0, 5)) if draw(st.integers(0, 5)) else None
        known = draw(st.integers(0, 4)) > 0 if complete is None else complete
        operation = draw(st.sampled_from(["read", "write", "write", "flush", "discard"]))
        length = 0 if operation == "flush" else 512 * draw(st.integers(1, 4))
        rows.append(
            Row(
                now_ns,
                dispatch_ns,
                max(now_ns, dispatch_ns or 0) + draw(st.integers(0, 25)) if known else None,
                operation,
                512 * draw(st.integers(0, 8)) if length else 0,
                length,
                draw(st.sampled_from(PROCESSES)),
                draw(st.sampled_from([-1, 7, 8])),
                None if dispatch_ns is None else draw(st.integers(0, most // 2)),
                ("fua",) if operation == "write" and draw(st.booleans()) else (),
            )
        )
    return rows


batch_sizes = st.sampled_from([1, 2, 3, 5, 100])
unhurried = settings(deadline=None, max_examples=20)
"""Settings for properties that write files: the first example also imports modules."""
