"""Requests of a replay by operation: planned, issued, completed, failed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from drivelab.analysis.replay_requests import (
    answered,
    completed,
    distribution,
    latencies_us,
    mean,
    operation_codes,
    times_ns,
    trace_latencies_us,
)
from drivelab.trace.schema import OPERATIONS

STAGES = ("planned", "issued", "completed", "failed")
COLUMNS = (
    "operation",
    *(f"{stage}_{what}" for what in ("requests", "bytes") for stage in STAGES),
    *(f"{name}_latency_us" for name in ("mean", "p50", "p99", "p999", "max")),
    "trace_mean_latency_us",
)


def operations(requests: pd.DataFrame) -> pd.DataFrame:
    """A row of COLUMNS for each operation that was planned, in the order of OPERATIONS.

    `completed` came back well, `failed` with an error; what was issued and is in neither never came back. Latencies
    are of completed requests, `trace_mean_latency_us` is the trace's of the same ones as far as it knows them.
    Columns: operation, length_bytes, issue_ns, complete_ns, error, preflush, trace_latency_ns.
    """
    codes, length = operation_codes(requests), requests["length_bytes"].to_numpy(np.int64)
    good = completed(requests)
    stages = {
        "planned": np.ones(len(requests), np.bool_),
        "issued": ~np.isnan(times_ns(requests, "issue_ns")),
        "completed": good,
        "failed": answered(requests) & ~good,
    }
    latency_us, then_us = latencies_us(requests), trace_latencies_us(requests)
    rows: list[dict[str, Any]] = []
    for code, name in enumerate(OPERATIONS):
        mine = codes == code
        if not mine.any():
            continue
        row: dict[str, Any] = {"operation": name}
        for stage, chosen in stages.items():
            row[f"{stage}_requests"] = int((mine & chosen).sum())
            row[f"{stage}_bytes"] = int(length[mine & chosen].sum())
        spread = distribution(latency_us[mine & good], (50.0, 99.0, 99.9))
        row |= {f"{key}_latency_us": value for key, value in spread.items()}
        row["trace_mean_latency_us"] = mean(then_us[mine & good & ~np.isnan(then_us)])
        rows.append(row)
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype({column: np.float64 for column in COLUMNS if column.endswith("_us")})


def counts(found: pd.DataFrame, stage: str) -> dict[str, dict[str, int]]:
    """{operation: {requests, bytes}} of a stage (one of STAGES), from what `operations` gives."""
    return {
        row["operation"]: {"requests": int(row[f"{stage}_requests"]), "bytes": int(row[f"{stage}_bytes"])}
        for row in found.to_dict("records")
    }
