"""Report one replay's fidelity and the drive's performance. JSON-able."""

from __future__ import annotations

import errno
import functools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from drivelab.plan.replay_choice import ReplayChoice
from drivelab.replay.evaluation import marks
from drivelab.replay.evaluation.fidelity import (
    issue_error_summary,
    issue_errors_us,
    lateness_by,
    order_inversions,
    parked,
    span_ratio,
)
from drivelab.replay.evaluation.marks import FINISHED, TIME_IS_UP
from drivelab.replay.evaluation.metrics import compare_with_trace, in_flight, response, service
from drivelab.replay.evaluation.overlaps import COLUMNS as OVERLAP_COLUMNS
from drivelab.replay.evaluation.overlaps import overlaps
from drivelab.replay.evaluation.requests import (
    answered,
    completed,
    distribution,
    latencies_us,
    mean,
    operation_codes,
    times_ns,
    trace_latencies_us,
)
from drivelab.replay.evaluation.stream_results import streams
from drivelab.replay.outcome import outcome_about, read_outcome
from drivelab.trace.parquet_schema import OPERATIONS, has_queue_times

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


KILLED = "killed"
_AT_WORK = ("prepared", "running")
"""States of an engine that vanished without a final state."""
_NAMES = {**errno.errorcode, errno.EOPNOTSUPP: "EOPNOTSUPP"}
"""Linux names: Python has another name for the last number."""
_TIMES = ("operation", "deadline_ns", "issue_ns", "waited", "trace_queue_ns")
_SERVICE = ("operation", "length_bytes", "issue_ns", "complete_ns", "error", "preflush", "trace_latency_ns")
_RESPONSE = ("operation", "deadline_ns", "issue_ns", "complete_ns", "error")
_DEPTH = ("issue_ns", "complete_ns", "trace_queue_ns", "trace_latency_ns")


def report(outcome: Path, prepared: Mapping[str, Any], engine: str) -> dict[str, Any]:
    """Return the report of the replay in `outcome`; unknown values are null.

    `outcome` is a file of drivelab.replay.outcome, `prepared` is Prepared.to_mapping(), `engine` the engine's name.
    Counts are {operation: {requests, bytes}}; `completed` succeeded, `failed` returned an error. A `partial` report
    covers only the replayed part and has no score, as the workload differs. `marks` have the form "word: sentence".

    Needs about 100 B of memory per request. Raises UserError when the outcome cannot be read.
    """
    about = outcome_about(outcome)
    results = about["results"]
    choice = ReplayChoice.from_mapping(prepared["choice"])
    state = KILLED if results["state"] in _AT_WORK else str(results["state"])
    read = functools.partial(read_outcome, outcome)
    times = _times(read(_TIMES), choice)
    last_ns = float(results.get("heartbeat_ns", 0))
    served, by_operation = _served(read(_SERVICE), last_ns)
    by_stream = _streams(read([*_SERVICE, "offset_bytes", "process"]))
    stages = {stage: counts(by_operation, stage) for stage in STAGES}
    requests = {stage: sum(count["requests"] for count in by_name.values()) for stage, by_name in stages.items()}
    back = requests["completed"] + requests["failed"]
    partial = back < requests["planned"]
    body: dict[str, Any] = {
        "engine": engine,
        "timing": choice.words(),
        "timing_mode": choice.timing.mode,
        "choice": choice.to_mapping(),
        "mapping": prepared["mapping"],
        "dependencies": choice.dependencies,
        "state": state,
        "partial": partial or state not in (FINISHED, TIME_IS_UP),
        "marks": [
            *marks.of_requests(state, requests, served["errors"], int(prepared.get("lost") or 0), partial),
            *([] if has_queue_times(prepared.get("provenance") or {}) else [marks.ISSUE_TIMES]),
        ],
        **stages,
        **times,
        **served,
        "response_us": response(read(_RESPONSE)) if choice.is_open_loop else None,
        "in_flight": in_flight(read(_DEPTH), last_ns),
        "overlaps": overlaps(read(OVERLAP_COLUMNS), prepared.get("overlapping")),
        "trace_duration_s": prepared["trace_duration_s"],
        "planned_issue_span_s": prepared["issue_span_s"],
        "operations": by_operation.to_dict("records"),
        **by_stream,
        "host": {"wakeup_us": _wakeup(results)},
        "issued_by": _issued_by(results),
        "buffers": _buffers(results),
    }
    if body["buffers"] == "plain" and not results.get("nvme"):
        body["marks"].append(marks.PLAIN)
    if choice.timing.has_deadlines:
        body["marks"] = [*body["marks"], *marks.of_times(body)]
    if body["partial"]:
        body["score"] = None
    cleaned: dict[str, Any] = jsonable(body)
    return cleaned


def jsonable(value: Any) -> Any:
    """Convert to JSON types; non-finite numbers become None."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return None if value is pd.NA else value


def _times(requests: pd.DataFrame, choice: ReplayChoice) -> dict[str, Any]:
    """Return the metrics of issue times."""
    issue_ns = times_ns(requests, "issue_ns")
    asap = not choice.timing.has_deadlines
    plan = times_ns(requests, "trace_queue_ns" if asap else "deadline_ns")
    span_s, planned_s, ratio = span_ratio(issue_ns, plan)
    part = " of the requests that were issued" if np.isnan(issue_ns).any() else ""
    basis = f"first to last {'arrival in the trace' if asap else 'deadline'}{part}"
    return {
        "issue_span_s": span_s,
        "duration_ratio": ratio,
        "duration_basis": None if planned_s is None else basis,
        "compared_span_s": planned_s,
        "issue_error_us": issue_error_summary(issue_errors_us(requests)),
        "lateness_by": lateness_by(requests),
        "order_inversions": order_inversions(issue_ns, parked(requests)),
    }


def _served(requests: pd.DataFrame, last_ns: float) -> tuple[dict[str, Any], pd.DataFrame]:
    """Return the drive's metrics, and the table by operation."""
    issue_ns, complete_ns = times_ns(requests, "issue_ns"), times_ns(requests, "complete_ns")
    codes, numbers = np.unique(requests["error"].to_numpy(), return_counts=True)
    errors = {_NAMES.get(int(code), str(code)): int(n) for code, n in zip(codes, numbers, strict=True) if code}
    known = not np.isnan(complete_ns).all()
    duration_s = float(np.nanmax(complete_ns) - np.nanmin(issue_ns)) / 1e9 if known else None
    del issue_ns, complete_ns
    body = {
        "errors": errors,
        "duration_s": duration_s,
        **service(requests, last_ns),
        "comparison": compare_with_trace(requests),
    }
    return body, operations(requests)


def _streams(requests: pd.DataFrame) -> dict[str, Any]:
    by_stream = streams(requests)
    return {
        name: by_stream[by_stream["stream_kind"] == kind].drop(columns="stream_kind").to_dict("records")
        for name, kind in (("streams", "stream"), ("processes", "process"))
    }


def _buffers(results: Mapping[str, Any]) -> str:
    """Return the kind of io_uring buffers. Earlier versions always registered buffers, or refused the replay."""
    return "plain" if results.get("plain_buffers") else "registered"


def _issued_by(results: Mapping[str, Any]) -> str | None:
    """Return in words how the engine issued; None for the virtual clock, and for versions that did not say it."""
    if not results.get("threads"):
        return None
    ways = {"nvme": "as NVMe commands", "polled": "polled", "kernel_thread": "submitted by a kernel thread"}
    threads = "1 thread" if results["threads"] == 1 else f"{results['threads']} threads"
    return ", ".join([threads, *(words for name, words in ways.items() if results.get(name))])


def _wakeup(results: Mapping[str, Any]) -> dict[str, float] | None:
    """Return this host's wake-up delay, which the engine measured before the start."""
    if not results.get("wakeup_max_ns"):
        return None
    return {name: results[f"wakeup_{name}_ns"] / 1000 for name in ("p50", "p95", "p99", "max")}
