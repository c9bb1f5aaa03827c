"""Judge one rate of an open-loop load from the times of its requests.

The response time counts from the time at which a request was due, not from its issue. So it includes the time in a
queue before the drive, wherever that queue is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from drivelab.core.errors import UserError
from drivelab.criteria.rate_search import HOST_LIMITED, UNDECIDED, judge_with_host
from drivelab.criteria.settling import Floats
from drivelab.criteria.tail_interval import TailInterval, counted, tail_interval
from drivelab.plan.loops import time_words
from drivelab.replay.engine_records import COMPLETED, NOT_ISSUED, WAITED_FOR, open_results, open_schedule

REQUESTS = "requests.parquet"
"""Evidence of one measurement of a rate."""
_SCHEMA = pa.schema(
    [
        pa.field("due_ns", pa.int64(), nullable=False),
        pa.field("issue_ns", pa.int64()),
        pa.field("complete_ns", pa.int64()),
        pa.field("waited", pa.int8(), nullable=False),
        pa.field("in_flight", pa.int32(), nullable=False),
        pa.field("operation", pa.int8(), nullable=False),
    ]
)
"""Times in ns after the start; null: not issued before the end. `waited`: index in WAITED_FOR."""
_DEPTH = WAITED_FOR.index("depth")
LATE_SHARE = 0.1
"""The host's own delay of an issue is a doubt above this share of the limit."""
_PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p999": 99.9, "p9999": 99.99, "p99999": 99.999}


def write_requests(schedule: Path, results: Path, output: Path) -> None:
    """Write the times of all requests, one row each; raises OSError without space."""
    plan, outcome = open_schedule(schedule).records, open_results(results).records
    issued, back = outcome["state"] != NOT_ISSUED, outcome["state"] == COMPLETED
    columns = {
        "due_ns": pa.array(plan["deadline_ns"].astype(np.int64)),
        "issue_ns": pa.array(outcome["issue_ns"].astype(np.int64), mask=~issued),
        "complete_ns": pa.array(outcome["complete_ns"].astype(np.int64), mask=~back),
        "waited": pa.array(outcome["waited"].astype(np.int8)),
        "in_flight": pa.array(outcome["in_flight"].astype(np.int32)),
        "operation": pa.array(plan["operation"].astype(np.int8)),
    }
    times = ("due_ns", "issue_ns", "complete_ns")
    pq.write_table(pa.table(columns, schema=_SCHEMA), output, compression="zstd", use_dictionary=False,
                   column_encoding=dict.fromkeys(times, "DELTA_BINARY_PACKED"))  # fmt: skip


@dataclass(frozen=True)
class Requests:
    """Times of the requests of one measurement, in us, in the order in which they were due; infinite if never."""

    due: Floats
    issue: Floats
    complete: Floats
    waited_for_depth: npt.NDArray[np.bool_]
    in_flight: npt.NDArray[np.int32]
    operation: npt.NDArray[np.int8]
    """Codes of drivelab.replay.engine_records."""

    @property
    def response(self) -> Floats:
        return self.complete - self.due

    @property
    def host_delay(self) -> Floats:
        """Return how late the host issued each request, unless it waited for a place in the queue."""
        late = np.where(self.issued & ~self.waited_for_depth, self.issue - self.due, 0.0)
        return np.maximum(late, 0.0)

    @property
    def issued(self) -> npt.NDArray[np.bool_]:
        return np.isfinite(self.issue)

    @property
    def response_without_host(self) -> Floats:
        """Return the response times without the host's own delays.

        A request that was never issued was the host's fault if the last issued one did not wait for a place in the
        queue: then there was a place. It counts as served at once.
        """
        issued = np.flatnonzero(self.issued)
        by_host = len(issued) > 0 and not self.waited_for_depth[issued[-1]]
        return np.where(self.issued, self.response - self.host_delay, 0.0 if by_host else np.inf)

    def completed(self, operation: int) -> int:
        """Return the number of completed requests of an operation."""
        return int(np.count_nonzero(np.isfinite(self.complete) & (self.operation == operation)))


def read_requests(folder: Path) -> Requests:
    """Read the evidence of one measurement; raises UserError if it is missing or damaged."""
    try:
        table = pq.read_table(folder / REQUESTS, schema=_SCHEMA)
    except (OSError, pa.ArrowException) as error:
        raise UserError(
            f"{folder / REQUESTS}: cannot be read ({error}); restore it from an archive, or remove the recording to "
            "measure again"
        ) from None

    def microseconds(name: str) -> Floats:
        column = table.column(name).combine_chunks()
        values = column.fill_null(0).to_numpy() / 1000
        return np.where(column.is_null().to_numpy(zero_copy_only=False), np.inf, values)

    return Requests(
        due=microseconds("due_ns"),
        issue=microseconds("issue_ns"),
        complete=microseconds("complete_ns"),
        waited_for_depth=table.column("waited").to_numpy() == _DEPTH,
        in_flight=table.column("in_flight").to_numpy(),
        operation=table.column("operation").to_numpy(),
    )


def rate_facts(measured: Sequence[Requests], percentile: float, limit_us: float) -> dict[str, Any]:
    """Return outcome and values of a rate, from all measurements of it; columns of the table `load_rates`.

    `low_us` and `high_us` are the confidence interval of the percentile; `high_us` is None if too few requests lie
    beyond the percentile.
    """
    responses = [counted(part.response) for part in measured]
    delays = [counted(part.host_delay) for part in measured]
    interval = tail_interval(responses, percentile)
    without_host = tail_interval([counted(part.response_without_host) for part in measured], percentile)
    outcome = judge_with_host(interval, without_host, limit_us)
    waited = np.concatenate([part.waited_for_depth[part.issued] for part in measured])
    values, late = np.concatenate(responses), np.concatenate(delays)
    unserved = int(np.count_nonzero(np.isinf(values)))
    facts = {
        "outcome": outcome,
        "achieved_iops": _achieved_iops(measured),
        "requests": interval.requests,
        "requests_beyond": int(np.count_nonzero(values > interval.value)),
        "requests_unserved": unserved,
        "effective_requests": interval.effective_requests,
        "response_us": _finite(interval.value),
        "low_us": _finite(interval.low),
        "high_us": _finite(interval.high),
        "mean_response_us": _finite(float(values.mean())),
        **{f"{name}_response_us": _percentile(values, share) for name, share in _PERCENTILES.items()},
        "max_response_us": _finite(float(values.max())),
        "late_issue_us": float(np.percentile(late, percentile, method="inverted_cdf")),
        "depth_limited_pct": 100 * float(waited.mean()) if len(waited) else 0.0,
        "most_in_flight": int(max(part.in_flight.max() for part in measured)),
    }
    return {**facts, "doubts": list(_doubts(facts, interval, percentile, limit_us))}


def _achieved_iops(measured: Sequence[Requests]) -> float:
    """Return the completions per second between the first and the last due time that counts."""
    completions, span_us = 0, 0.0
    for part in measured:
        due = counted(part.due)
        completions += int(np.count_nonzero((part.complete > due[0]) & (part.complete <= due[-1])))
        span_us += float(due[-1] - due[0])
    return 1e6 * completions / span_us if span_us else 0.0


def _percentile(values: Floats, percentile: float) -> float | None:
    if len(values) * (1 - percentile / 100) < 1:
        return None
    return _finite(float(np.percentile(values, percentile, method="inverted_cdf")))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _doubts(facts: Mapping[str, Any], interval: TailInterval, percentile: float, limit_us: float) -> Iterator[str]:
    """Yield what speaks against the values of a rate, as "word: sentence"."""
    if facts["outcome"] == HOST_LIMITED:
        yield "host-limited: without the host's late issues the rate would not fail"
    if facts["late_issue_us"] > LATE_SHARE * limit_us:
        yield (
            f"late issue: p{percentile:g} of the host's own delay is {time_words(facts['late_issue_us'])}, "
            f"above {100 * LATE_SHARE:g} % of the limit"
        )
    if facts["depth_limited_pct"] > 0:
        yield f"depth limit reached: {facts['depth_limited_pct']:.3g} % of the requests waited for a place in the queue"
    if facts["outcome"] == UNDECIDED and math.isinf(interval.high):
        yield f"too few requests: {interval.effective_requests:,} effective requests do not bound p{percentile:g}"
    if facts["requests_unserved"]:
        yield f"unserved: {facts['requests_unserved']:,} requests were not issued before the end"
