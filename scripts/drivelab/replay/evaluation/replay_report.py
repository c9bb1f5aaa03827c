"""Report one replay's fidelity and the drive's performance. JSON-able."""

from __future__ import annotations

import errno
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from drivelab.plan.replay_choice import ReplayChoice
from drivelab.replay.evaluation.fidelity import issue_errors, lateness_by, order_inversions, span_ratio
from drivelab.replay.evaluation.metrics import compare_with_trace, in_flight, overloaded, response, service
from drivelab.replay.evaluation.requests import Requests, distribution, mean
from drivelab.replay.evaluation.stream_results import streams
from drivelab.replay.outcome import outcome_about, read_outcome
from drivelab.replay.overlaps import overlaps
from drivelab.trace.parquet_schema import OPERATIONS, has_queue_times

STAGES = ("planned", "issued", "completed", "failed")
COLUMNS = (
    "operation",
    *(f"{stage}_{what}" for what in ("requests", "bytes") for stage in STAGES),
    *(f"{name}_latency_us" for name in ("mean", "p50", "p99", "p999", "max")),
    "trace_mean_latency_us",
)
_READ = (
    "operation", "deadline_ns", "issue_ns", "complete_ns", "waited", "error", "preflush", "offset_bytes",
    "length_bytes", "process", "trace_queue_ns", "trace_latency_ns",
)  # fmt: skip


def operations(requests: Requests) -> pd.DataFrame:
    """Return a row of COLUMNS for each planned operation, in the order of OPERATIONS.

    `failed` requests completed with an error; issued requests in neither `completed` nor `failed` never returned.
    Latencies are of completed requests; `trace_mean_latency_us` is the mean in the trace of those it knows.
    """
    codes, length, good = requests.operation, requests.length_bytes, requests.completed
    every = np.ones(len(requests), np.bool_)
    stages = dict(zip(STAGES, (every, requests.issued, good, requests.answered & ~good), strict=True))
    latency_us, then_us = requests.latency_us, requests.trace_latency_us
    rows: list[dict[str, Any]] = []
    for code in np.unique(codes):
        of_operation = codes == code
        row: dict[str, Any] = {"operation": OPERATIONS[code]}
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
_FINISHED, _TIME_IS_UP = "finished", "time is up"
"""States of an engine that issued all that it should."""
_LATE_PCT = 1.0
"""A mark is set if a larger share of requests waited for the depth limit (our choice)."""
_RATIO_PCT = 1.0
"""A mark is set if the duration ratio of a timed replay is further from 1 (our choice)."""
_PLAIN = (
    "plain buffers: the locked-memory limit is too low to register the buffers with io_uring, which costs CPU time for "
    "each request; raise the limit (ulimit -l) or run as root"
)
_ISSUE_TIMES = "issue times: requests are due when the traced drive got them; latencies of the trace begin there"


def report(outcome: Path, prepared: Mapping[str, Any], engine: str) -> dict[str, Any]:
    """Return the report of the replay in `outcome`; unknown values are null.

    `outcome` is a file of drivelab.replay.outcome, `prepared` is Prepared.to_mapping(), `engine` the engine's name.
    Counts are {operation: {requests, bytes}}; `completed` succeeded, `failed` returned an error. A `partial` report
    covers only the replayed part and has no score, as the workload differs. `marks` have the form "word: sentence".

    Needs about 150 B of memory per request. Raises UserError when the outcome cannot be read.
    """
    results = outcome_about(outcome)["results"]
    choice = ReplayChoice.from_mapping(prepared["choice"])
    state = KILLED if results["state"] in _AT_WORK else str(results["state"])
    replayed = Requests(read_outcome(outcome, _READ))
    last_ns = float(results.get("heartbeat_ns", 0))
    by_operation, errors = operations(replayed), _errors(replayed)
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
        "partial": partial or state not in (_FINISHED, _TIME_IS_UP),
        "marks": [
            *_marks(state, requests, errors, int(prepared.get("lost") or 0), partial),
            *([] if has_queue_times(prepared.get("provenance") or {}) else [_ISSUE_TIMES]),
        ],
        **stages,
        **_times(replayed, choice),
        "errors": errors,
        "duration_s": _duration_s(replayed),
        **service(replayed, last_ns),
        "comparison": compare_with_trace(replayed),
        "response_us": response(replayed) if choice.is_open_loop else None,
        "in_flight": in_flight(replayed, last_ns),
        "overlaps": {"trace": prepared.get("overlapping"), "replay": overlaps(replayed.frame)},
        "trace_duration_s": prepared["trace_duration_s"],
        "planned_issue_span_s": prepared["issue_span_s"],
        "operations": by_operation.to_dict("records"),
        **_streams(replayed),
        "host": {"wakeup_us": _wakeup(results)},
        "issued_by": _issued_by(results),
        # Earlier versions always registered buffers, or refused the replay.
        "buffers": "plain" if results.get("plain_buffers") else "registered",
    }
    if body["buffers"] == "plain" and not results.get("nvme"):
        body["marks"].append(_PLAIN)
    if choice.timing.has_deadlines:
        body["marks"] = [*body["marks"], *_marks_of_times(body)]
    if body["partial"]:
        body["score"] = None
    cleaned: dict[str, Any] = jsonable(body)
    return cleaned


def _marks(state: str, requests: Mapping[str, int], errors: Mapping[str, int], lost: int, partial: bool) -> list[str]:
    """Return warnings about the numbers, without a final full stop."""
    marks = []
    if lost:
        marks.append(f"lossy: the trace lacks {lost} events")
    if state not in (_FINISHED, _TIME_IS_UP):
        marks.append(f"{state}: the replay did not finish")
    if partial:
        back = requests["completed"] + requests["failed"]
        marks.append(
            f"partial: {back} of {requests['planned']} requests completed or failed, {requests['issued']} were issued"
        )
    if requests["failed"]:
        counts_by_error = ", ".join(f"{name} {count}" for name, count in errors.items())
        marks.append(f"errors: {requests['failed']} of {requests['issued']} requests failed ({counts_by_error})")
    return marks


def _marks_of_times(body: Mapping[str, Any]) -> list[str]:
    """Return marks of a timed replay that differs from the trace.

    They are overloaded, late, slower and faster.
    """
    marks = []
    if overloaded(body["in_flight"]):
        most = {name: depth["most"] for name, depth in body["in_flight"].items()}
        marks.append(f"overloaded: up to {most['replay']:,} in flight, {most['trace']:,} in the trace")
    if body["lateness_by"] and body["dependencies"] != "trace":  # whose depth limit stands for dependencies
        waited = body["lateness_by"]["depth"]["requests"]
        pct = 100 * waited / sum(cause["requests"] for cause in body["lateness_by"].values())
        if pct > _LATE_PCT:
            marks.append(f"late: {pct:.2g} % of the requests waited for the depth limit")
    ratio = body["duration_ratio"]
    if ratio is not None and abs(ratio - 1) > _RATIO_PCT / 100:
        marks.append(f"{'slower' if ratio > 1 else 'faster'}: duration ratio {ratio:.{3 if ratio < 1.1 else 2}f}")
    return marks


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


def _times(requests: Requests, choice: ReplayChoice) -> dict[str, Any]:
    """Return the metrics of issue times."""
    asap = not choice.timing.has_deadlines
    plan_ns = requests.times_ns("trace_queue_ns" if asap else "deadline_ns")
    span_s, planned_s, ratio = span_ratio(requests.issue_ns, plan_ns)
    part = "" if requests.issued.all() else " of the requests that were issued"
    basis = f"first to last {'arrival in the trace' if asap else 'deadline'}{part}"
    return {
        "issue_span_s": span_s,
        "duration_ratio": ratio,
        "duration_basis": None if planned_s is None else basis,
        "compared_span_s": planned_s,
        "issue_error_us": issue_errors(requests),
        "lateness_by": lateness_by(requests),
        "order_inversions": order_inversions(requests),
    }


def _errors(requests: Requests) -> dict[str, int]:
    """Return the number of requests by name of their error."""
    codes, numbers = np.unique(requests.frame["error"].to_numpy(), return_counts=True)
    return {_NAMES.get(int(code), str(code)): int(n) for code, n in zip(codes, numbers, strict=True) if code}


def _duration_s(requests: Requests) -> float | None:
    """Return the time from the first issue to the last completion, or None without a completion."""
    if np.isnan(requests.complete_ns).all():
        return None
    return float(np.nanmax(requests.complete_ns) - np.nanmin(requests.issue_ns)) / 1e9


def _streams(requests: Requests) -> dict[str, Any]:
    by_stream = streams(requests)
    return {
        name: by_stream[by_stream["stream_kind"] == kind].drop(columns="stream_kind").to_dict("records")
        for name, kind in (("streams", "stream"), ("processes", "process"))
    }


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
