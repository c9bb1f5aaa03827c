"""Marks of a replay: what limits its numbers, as "word: sentence" without a final full stop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drivelab.replay.evaluation.metrics import overloaded

FINISHED, TIME_IS_UP = "finished", "time is up"
"""States of an engine that issued all that it should."""
LATE_PCT = 1.0
"""A mark is set if a larger share of requests waited for the depth limit (our choice)."""
RATIO_PCT = 1.0
"""A mark is set if the duration ratio of a timed replay is further from 1 (our choice)."""
PLAIN = (
    "plain buffers: the locked-memory limit is too low to register the buffers with io_uring, which costs CPU time for "
    "each request; raise the limit (ulimit -l) or run as root"
)
ISSUE_TIMES = "issue times: requests are due when the traced drive got them; latencies of the trace begin there"


def of_requests(
    state: str, requests: Mapping[str, int], errors: Mapping[str, int], lost: int, partial: bool
) -> list[str]:
    """Return warnings about the numbers, without a final full stop."""
    marks = []
    if lost:
        marks.append(f"lossy: the trace lacks {lost} events")
    if state not in (FINISHED, TIME_IS_UP):
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


def of_times(body: Mapping[str, Any]) -> list[str]:
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
        if pct > LATE_PCT:
            marks.append(f"late: {pct:.2g} % of the requests waited for the depth limit")
    ratio = body["duration_ratio"]
    if ratio is not None and abs(ratio - 1) > RATIO_PCT / 100:
        marks.append(f"{'slower' if ratio > 1 else 'faster'}: duration ratio {ratio:.{3 if ratio < 1.1 else 2}f}")
    return marks
