"""Count requests that overlapped in flight, in the trace and in the replay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from drivelab.replay.conflicts import Overlaps, accesses_of
from drivelab.replay.evaluation.requests import operation_codes, times_ns
from drivelab.trace.parquet_schema import BATCH_ROWS

COLUMNS = ("operation", "offset_bytes", "length_bytes", "issue_ns", "complete_ns")


def overlaps(requests: pd.DataFrame, in_trace: int | None) -> dict[str, Any]:
    """Return how many requests began while a conflicting one was in flight.

    `trace`, the number in the trace, is null without completions there, and `replay` if no request was issued. A
    request that never completed stays in flight.
    """
    issue_ns, complete_ns = times_ns(requests, "issue_ns"), times_ns(requests, "complete_ns")
    issued = np.flatnonzero(~np.isnan(issue_ns))
    order = issued[np.argsort(issue_ns[issued], kind="stable")]
    last_ns = np.iinfo(np.int64).max
    operation = operation_codes(requests).astype(np.int64)
    accesses = accesses_of(operation, *(requests[name].to_numpy(np.int64) for name in ("offset_bytes", "length_bytes")))
    seen, count = Overlaps(), 0
    for first in range(0, order.size, BATCH_ROWS):
        rows = order[first : first + BATCH_ROWS]
        ends = complete_ns[rows]
        ends_ns = np.where(np.isnan(ends), last_ns, np.where(np.isnan(ends), 0, ends).astype(np.int64))
        count += int(seen.of(accesses.part(rows), issue_ns[rows].astype(np.int64), ends_ns).sum())
    return {"trace": in_trace, "replay": count if order.size else None}
