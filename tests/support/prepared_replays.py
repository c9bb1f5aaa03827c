"""Prepare replays from rows, and read the prepared files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from made_traces import Row, table
from whole_traces import write_trace

from drivelab.plan.replay_choice import ReplayChoice
from drivelab.replay.engine_records import Records, checksum, open_schedule
from drivelab.replay.prepare import Prepared, prepare
from drivelab.trace.parquet_schema import OPERATIONS, REQUESTS

MIB = 1 << 20
GIB = 1 << 30


def write_rows(path: Path, rows: Sequence[Row], **columns: Sequence[Any]) -> Path:
    """Write a trace of rows; `columns` sets columns that a Row lacks (`cpu`, `pieces`, `lost` events)."""
    trace_table = table(rows)
    lost = columns.pop("lost", ())
    for name, values in columns.items():
        place = trace_table.schema.get_field_index(name)
        trace_table = trace_table.set_column(place, REQUESTS.field(name), pa.array(values, REQUESTS.field(name).type))
    write_trace(trace_table, {"lost": {"overrun": sum(lost)}, "unmatched": {}}, path)
    return path


def prepare_rows(
    folder: Path,
    rows: Sequence[Row],
    choice: ReplayChoice | None = None,
    capacity_bytes: int = GIB,
    block_bytes: int = 512,
    **columns: Sequence[Any],
) -> Prepared:
    trace = write_rows(folder / "trace.parquet", rows, **columns)
    return prepare(trace, folder / "made", choice or ReplayChoice(), capacity_bytes, block_bytes)


def records_of(prepared: Prepared) -> Records:
    """Return the records of the schedule, and check that it is complete."""
    schedule = open_schedule(prepared.schedule)
    assert schedule.header["checksum"] == checksum(schedule.records)
    assert schedule.header["count"] == prepared.requests
    assert (np.diff(schedule.records["deadline_ns"].astype(np.int64)) >= 0).all()
    return schedule.records


def planned_of(prepared: Prepared) -> pd.DataFrame:
    """Return the planned rows, and check that they agree with the schedule."""
    records = records_of(prepared)
    frame = pq.read_table(prepared.planned).to_pandas()
    assert len(frame) == len(records)
    for name in ("offset_bytes", "length_bytes"):
        assert (frame[name].to_numpy() == records[name].astype(np.int64)).all()
    assert (frame["after"].to_numpy() + 1 == records["after"]).all()
    assert (frame["after"].to_numpy() < np.arange(len(frame))).all()
    assert [OPERATIONS[code] for code in records["operation"]] == list(frame["operation"])
    assert (frame["fua"].to_numpy() == (records["flags"] == 1)).all()
    return frame


def brief(prepared: Prepared) -> list[tuple[int, str, int, int]]:
    """Return deadline, operation, offset and length of each record."""
    names = ("deadline_ns", "operation", "offset_bytes", "length_bytes")
    planned_of(prepared)
    return [
        (int(deadline), OPERATIONS[code], int(offset), int(length))
        for deadline, code, offset, length in zip(*(records_of(prepared)[name] for name in names), strict=True)
    ]
