"""Count the requests of a replay by operation and stage."""

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
    """Return a row of COLUMNS for each planned operation, in the order of OPERATIONS.

    `failed` requests completed with an error; issued requests in neither `completed` nor `failed` never returned.
    Latencies are of completed requests; `trace_mean_latency_us` is the mean in the trace of those it knows.
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
        of_operation = codes == code
        if not of_operation.any():
            continue
        row: dict[str, Any] = {"operation": name}
        for stage, chosen in stages.items():
            row[f"{stage}_requests"] = int((of_operation & chosen).sum())
            row[f"{stage}_bytes"] = int(length[of_operation & chosen].sum())
        spread = distribution(latency_us[of_operation & good], (50.0, 99.0, 99.9))
        row |= {f"{key}_latency_us": value for key, value in spread.items()}
        row["trace_mean_latency_us"] = mean(then_us[of_operation & good & ~np.isnan(then_us)])
        rows.append(row)
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype({column: np.float64 for column in COLUMNS if column.endswith("_us")})


def counts(operation_rows: pd.DataFrame, stage: str) -> dict[str, dict[str, int]]:
    """Return {operation: {requests, bytes}} of a stage (one of STAGES).

    `operation_rows` is the result of `operations`.
    """
    return {
        row["operation"]: {"requests": int(row[f"{stage}_requests"]), "bytes": int(row[f"{stage}_bytes"])}
        for row in operation_rows.to_dict("records")
    }
