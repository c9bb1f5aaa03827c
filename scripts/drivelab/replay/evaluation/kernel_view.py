"""Compare a replay with the kernel's trace of it, independent of the engine."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.replay.evaluation.fidelity import bursts, issue_error_summary, order_inversions, parked, span_ratio
from drivelab.replay.evaluation.matching import Extents, Matches, match, surplus
from drivelab.replay.evaluation.requests import Floats, distribution, operation_codes, times_ns
from drivelab.replay.outcome import outcome_about, read_outcome
from drivelab.replay.volumes import ONLY
from drivelab.trace.decode import FIRST_EVENT_MONOTONIC
from drivelab.trace.parquet_schema import OPERATIONS, VOLUME, open_trace
from drivelab.trace.statistics.batch import UNKNOWN, Batch

_OUTCOME = (
    "operation", "offset_bytes", "length_bytes", "fua", "deadline_ns", "trace_queue_ns", "issue_ns", "complete_ns",
    "waited",
)  # fmt: skip
_CAPTURED = ("queue_ns", "complete_ns", "operation", "offset_bytes", "length_bytes", "error")
SLACK_NS = 1e6
"""Captured requests this long before the first issue or after the last completion still count."""
READ, WRITE, FLUSH, ZEROES = (OPERATIONS.index(name) for name in ("read", "write", "flush", "write-zeroes"))


@dataclass(frozen=True)
class _Seen:
    """What the kernel saw of one volume."""

    requests: pd.DataFrame
    operations: dict[str, dict[str, Any]]
    counts: dict[str, int]
    seen_ns: Floats
    """When the kernel queued each request, in ns after the start of the replay; shape (rows,)."""
    reason: str | None
    """Why `seen_ns` is after the start of the capture instead, or has nothing."""
    shifted: bool
    service_us: Floats
    losses: int
    session_losses: int
    """Those of `losses` that may be of another device of the same session."""


def compare(
    captures: Mapping[str, Path], outcome: Path, start_monotonic_ns: int
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Compare a replay's outcome with captures of its drives. JSON-able; of all `captures` together, and of each.

    `captures` has the decoded capture of each volume's drive; ONLY for a replay of one.

    `start_monotonic_ns` is the engine's start on CLOCK_MONOTONIC. For each operation, offset and length, the k-th
    captured request is matched to the k-th issued one of its volume. Flushes that the kernel added are left out;
    requests that the kernel split are matched to their parts. Each result:

    * `operations`: by operation `planned`, `issued`, `seen` ({requests, bytes}; seen: everything captured between the
      first and the last issue of the volume, from any source), `matched`, `missing` (issued, not captured) and `extra`
      (captured, not of the replay) requests. `missing` and `extra` are also totals. `split`: requests that became
      several. `refused`: attempts that the kernel rejected and repeated itself (see _captured). `lost`: events that
      the capture lost; they are missing here. A loss of a session with several devices counts for each volume.
    * `write_zeroes_seen_as_writes`: a tracer without write-zeroes shows them as writes of the same extent. They are
      matched to those, and count as write-zeroes, in `seen` too.
    * `flushes_unseen`: flushes to a drive without a volatile write cache. The kernel answers them itself, so none is
      captured; not in `missing`. `flushes_of_fua`: flushes that the kernel issued after FUA writes (RWF_DSYNC on a
      block device syncs it too); not in `extra`.
    * `issue_error_us` (queueing in the kernel minus deadline; None: see `times_reason`), `order_inversions`, `bursts`,
      `duration_ratio`, `queue_to_completion_us` of the matched reads and writes.

    Raises UserError when a file cannot be read.
    """
    named = set(captures) != {ONLY}
    requests = read_outcome(outcome, (*_OUTCOME, VOLUME.name) if named else _OUTCOME)
    repeated = len(requests) > outcome_about(outcome)["planned_requests"]
    rows = {name: np.flatnonzero(requests[VOLUME.name] == name) if named else slice(None) for name in captures}
    seen = {name: _seen(capture, requests.iloc[rows[name]], start_monotonic_ns) for name, capture in captures.items()}
    each = {name: _view([part], part.requests, part.seen_ns, repeated) for name, part in seen.items()}
    if not named:
        return each[ONLY], {}
    seen_ns = np.full(len(requests), np.nan)
    for name, part in seen.items():
        if part.shifted:  # other times are of another clock
            seen_ns[rows[name]] = part.seen_ns
    return _view(list(seen.values()), requests, seen_ns, repeated), each


def _seen(path: Path, requests: pd.DataFrame, start_monotonic_ns: int) -> _Seen:
    captured, queue_ns, complete_ns, provenance, refused = _captured(path)
    shift_ns, reason = _shift(provenance, start_monotonic_ns)
    issue_ns = times_ns(requests, "issue_ns")
    issued = np.flatnonzero(~np.isnan(issue_ns))
    planned = _extents(requests)
    sent = planned.take(issued)
    if shift_ns is not None:
        queue_ns, complete_ns = queue_ns + shift_ns, complete_ns + shift_ns
        chosen = _meanwhile(queue_ns, issue_ns[issued], times_ns(requests, "complete_ns"))
        captured, queue_ns, complete_ns = captured.take(chosen), queue_ns[chosen], complete_ns[chosen]
    kernel_flushes = np.zeros(len(captured), np.bool_)
    if shift_ns is not None:
        flushes = captured.operation == FLUSH
        flushed_ns = np.sort(issue_ns[issued][sent.operation == FLUSH])
        kernel_flushes[flushes] = surplus(flushed_ns, queue_ns[flushes])
    expected = sent
    if not (captured.operation == ZEROES).any():
        expected = replace(sent, operation=np.where(sent.operation == ZEROES, WRITE, sent.operation))
    matches = match(expected, captured, kernel_flushes)
    taken = matches.of_captured >= 0
    zeroes = np.flatnonzero(taken)[sent.operation[matches.of_captured[taken]] == ZEROES]
    as_writes = len(np.unique(matches.of_captured[zeroes])) if expected is not sent else 0
    captured.operation[zeroes] = ZEROES
    seen = matches.first >= 0
    seen_ns = np.full(len(requests), np.nan)
    seen_ns[issued[seen]] = queue_ns[matches.first[seen]]
    by_operation, of_flushes = _counts(requests, planned, sent, captured, matches)
    nothing = "no captured request belongs to the replay: was another device captured?"
    return _Seen(
        requests=requests,
        operations=by_operation,
        counts={
            "missing": sum(counts["missing"] for counts in by_operation.values()),
            "extra": sum(counts["extra"] for counts in by_operation.values()),
            "split": matches.split,
            "refused": refused,
            "write_zeroes_seen_as_writes": as_writes,
            **of_flushes,
        },
        seen_ns=seen_ns,
        reason=nothing if issued.size and not seen.any() else reason,
        shifted=shift_ns is not None,
        service_us=_service_us(sent, matches, queue_ns, complete_ns),
        losses=sum(dict(provenance.get("lost", {})).values()),
        session_losses=int(provenance.get("session_lost", 0)),
    )


def _view(parts: Sequence[_Seen], requests: pd.DataFrame, seen_ns: Floats, repeated: bool) -> dict[str, Any]:
    """Return the view of some volumes; `requests` and `seen_ns` are of all of them, in schedule order."""
    shifted = all(part.shifted for part in parts)
    deadline_ns = times_ns(requests, "deadline_ns")
    plan_ns = times_ns(requests, "trace_queue_ns") if np.isnan(deadline_ns).all() else deadline_ns
    if repeated:  # the schedule has no planned duration
        plan_ns = np.full(len(requests), np.nan)
    errors_us = (seen_ns - deadline_ns) / 1000 if shifted else np.empty(0)
    return {
        "operations": _summed([part.operations for part in parts]),
        **_summed([part.counts for part in parts]),
        "lost": max(part.session_losses for part in parts) + sum(part.losses - part.session_losses for part in parts),
        "issue_error_us": issue_error_summary(errors_us[~np.isnan(errors_us)]),
        "times_reason": next((part.reason for part in parts if part.reason is not None), None),
        "order_inversions": order_inversions(seen_ns, parked(requests)),
        "bursts": bursts(requests.assign(issue_ns=seen_ns)) if shifted else None,
        "duration_ratio": span_ratio(seen_ns, plan_ns)[2],
        "queue_to_completion_us": distribution(np.concatenate([part.service_us for part in parts])),
    }


def _summed(counts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up counts of equal meaning, at any depth."""
    result: dict[str, Any] = {}
    for name in dict.fromkeys(name for each in counts for name in each):
        values = [each[name] for each in counts if name in each]
        result[name] = _summed(values) if isinstance(values[0], Mapping) else sum(values)
    return result


def _captured(path: Path) -> tuple[Extents, Floats, Floats, Mapping[str, Any], int]:
    """Return a capture's extents, times, provenance and refused attempts.

    Queue and completion times are in ns (NaN: unknown).

    The kernel refuses a long non-blocking request that must be split; io_uring then submits it from a thread.
    """
    with open_trace(path) as trace:
        batches = [Batch(requests) for requests in trace.batches(_CAPTURED)]
        provenance = trace.provenance

    def whole(values: Callable[[Batch], npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        return np.concatenate([np.empty(0, np.int64), *(values(batch) for batch in batches)])

    accepted = whole(lambda batch: batch.ints("error")) != errno.EAGAIN
    complete = whole(lambda batch: batch.complete_ns)
    complete_ns = np.where(complete == UNKNOWN, np.nan, complete.astype(np.float64))
    columns = (
        whole(lambda batch: batch.operation),
        whole(lambda batch: batch.offset_bytes),
        whole(lambda batch: batch.length_bytes),
    )
    queue_ns = whole(lambda batch: batch.queue_ns).astype(np.float64)
    extents = Extents(*(column[accepted] for column in columns))
    return extents, queue_ns[accepted], complete_ns[accepted], provenance, int((~accepted).sum())


def _shift(provenance: Mapping[str, Any], start_monotonic_ns: int) -> tuple[int | None, str | None]:
    """Return the shift from capture time to replay time in ns, or why unknown."""
    first = provenance.get(FIRST_EVENT_MONOTONIC)
    if not isinstance(first, int) or provenance.get("derived"):
        return None, "the capture does not record its start on the engine's clock"
    return first - start_monotonic_ns, None


def _meanwhile(at_ns: Floats, issue_ns: Floats, complete_ns: Floats) -> npt.NDArray[np.intp]:
    """Return captured requests from the first issue to the last completion.

    Others may use the drive before and after.
    """
    if not issue_ns.size:
        return np.empty(0, np.intp)
    end_ns = max(float(issue_ns.max()), float(np.nan_to_num(complete_ns).max()))
    return np.flatnonzero((at_ns >= issue_ns.min() - SLACK_NS) & (at_ns <= end_ns + SLACK_NS))


def _extents(requests: pd.DataFrame) -> Extents:
    return Extents(
        operation_codes(requests).astype(np.int64),
        requests["offset_bytes"].to_numpy(np.int64),
        requests["length_bytes"].to_numpy(np.int64),
    )


def _counts(
    requests: pd.DataFrame, planned: Extents, issued: Extents, captured: Extents, matches: Matches
) -> tuple[dict[str, dict[str, Any]], dict[str, int]]:
    """Return counts by operation, and counts of special flushes."""
    result: dict[str, dict[str, Any]] = {}
    unseen = of_fua = 0
    fua_writes = int((requests["fua"].to_numpy(np.bool_) & ~np.isnan(times_ns(requests, "issue_ns"))).sum())
    for code, name in enumerate(OPERATIONS):
        kinds = {"planned": planned, "issued": issued, "seen": captured}
        selected = {kind: extents.operation == code for kind, extents in kinds.items()}
        if not any(rows.any() for rows in selected.values()):
            continue
        matched = int((matches.first[selected["issued"]] >= 0).sum())
        missing = int(selected["issued"].sum()) - matched
        extra = int((matches.of_captured[selected["seen"]] < 0).sum())
        if code == FLUSH:
            of_fua = min(extra, fua_writes)
            extra -= of_fua
            if not selected["seen"].any():
                unseen, missing = missing, 0
        sizes = {
            kind: {"requests": int(selected[kind].sum()), "bytes": int(extents.length_bytes[selected[kind]].sum())}
            for kind, extents in kinds.items()
        }
        result[name] = {**sizes, "matched": matched, "missing": missing, "extra": extra}
    return result, {"flushes_unseen": unseen, "flushes_of_fua": of_fua}


def _service_us(issued: Extents, matches: Matches, queue_ns: Floats, complete_ns: Floats) -> Floats:
    """Return times from the first part's queueing to the last part's completion, where known."""
    used = (matches.first >= 0) & ((issued.operation == READ) | (issued.operation == WRITE))
    end_ns = np.full(len(issued), -np.inf)
    parts = matches.of_captured >= 0
    np.maximum.at(end_ns, matches.of_captured[parts], complete_ns[parts])  # NaN (unknown) wins
    taken_us = (end_ns[used] - queue_ns[matches.first[used]]) / 1000
    return np.asarray(taken_us[~np.isnan(taken_us)])
