"""Replay requests for tests: frames with the columns of an outcome, and the files behind outcomes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from drivelab.replay.engine_records import (
    COMPLETED,
    FINISHED,
    ISSUED,
    RESULT_RECORD,
    RESULTS_HEADER,
    RESULTS_HEADER_BYTES,
    WAITED_FOR,
    make_results,
)
from drivelab.replay.evaluation.requests import Requests
from drivelab.replay.planner import PLANNED
from drivelab.trace.parquet_schema import OPERATIONS

PREPARED: dict[str, Any] = {
    "choice": {"timing": {"mode": "original"}, "mapping": {"method": "auto"}, "dependencies": "none"},
    "mapping": {"method": "exact"},
    "trace_duration_s": 2.0,
    "issue_span_s": 1.5,
    "lost": 0,
}


def request(
    operation: str = "read",
    issue: float | None = 0.0,
    complete: float | None = 100.0,
    *,
    due: float | None = 0.0,
    offset: int = 0,
    length: int = 4096,
    trace_us: float | None = None,
    queued: float | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return one request, times in us; `more`: error, waited, in_flight, preflush, fua, process, after."""

    def ns(time_us: float | None) -> int | None:
        return None if time_us is None else round(1000 * time_us)

    return {
        "deadline_ns": ns(due), "operation": operation, "fua": False, "preflush": False, "offset_bytes": offset,
        "length_bytes": 0 if operation == "flush" else length, "process": "app", "pid": 7, "cpu": 0, "sync": False,
        "meta": False, "readahead": False, "after": -1,
        "trace_queue_ns": ns((due or 0.0) if queued is None else queued), "trace_latency_ns": ns(trace_us),
        "issue_ns": ns(issue), "complete_ns": ns(complete), "error": 0, "waited": "", "in_flight": 1, **more,
    }  # fmt: skip


def requests_frame(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return requests as a frame in the format of drivelab.replay.outcome.read_outcome."""
    frame = pd.DataFrame(list(rows), columns=list(request()))
    for name in ("deadline_ns", "trace_latency_ns", "issue_ns", "complete_ns"):
        frame[name] = frame[name].astype(np.float64)
    frame["operation"] = pd.Categorical(frame["operation"], categories=OPERATIONS)
    frame["waited"] = pd.Categorical(frame["waited"], categories=WAITED_FOR)
    frame["process"] = frame["process"].astype("category")
    return frame.astype({"error": np.int32, "length_bytes": np.int64, "offset_bytes": np.int64, "preflush": bool})


def replayed(rows: Sequence[dict[str, Any]]) -> Requests:
    return Requests(requests_frame(rows))


def write_planned(
    path: Path, rows: Sequence[dict[str, Any]], about: dict[str, Any] | None = None, schema: pa.Schema = PLANNED
) -> Path:
    """Write planned.parquet of requests, without their outcome."""
    table = pa.Table.from_pylist([{name: row[name] for name in schema.names} for row in rows], schema)
    body = json.dumps(PREPARED if about is None else about)
    pq.write_table(table.replace_schema_metadata({b"drivelab": body.encode()}), path, row_group_size=3)
    return path


def write_results(path: Path, rows: Sequence[dict[str, Any]], state: int = FINISHED, **header: int) -> Path:
    """Write results.bin of requests as an engine does; `moved` of a row replaces its length."""
    make_results(path, len(rows), 1)
    records = np.zeros(len(rows), RESULT_RECORD)
    for record, row in zip(records, rows, strict=True):
        if row["issue_ns"] is None:
            continue
        record["state"], record["issue_ns"] = ISSUED, row["issue_ns"]
        record["waited"], record["in_flight"] = WAITED_FOR.index(row["waited"]), row["in_flight"]
        if row["complete_ns"] is not None:
            moved = row["length_bytes"] if row["operation"] in ("read", "write") else 0
            record["state"], record["complete_ns"] = COMPLETED, row["complete_ns"]
            record["result"] = -row["error"] if row["error"] else row.get("moved", moved)
    content = bytearray(path.read_bytes())
    head = np.frombuffer(content, RESULTS_HEADER, 1)
    for name, value in {"state": state, **header}.items():
        head[name] = value
    content[RESULTS_HEADER_BYTES:] = records.tobytes()
    path.write_bytes(content)
    return path
