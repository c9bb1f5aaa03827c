"""Invalid replays and application runs: why they are unsound, and their remaining numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from drivelab.criteria.soundness import NEGATIVE_LATENCY, NEGATIVE_RATE, NO_DURATION, NO_IO, NOT_A_NUMBER, because
from drivelab.tables.result_schemas import APPLICATION_RUNS

Facts = dict[str, Any]

_DURATIONS = ("duration_s", "busy_s")
_RATES = ("bandwidth_mib_s", "score")
_ACCESS_TIMES = ("access_time_us", "read_access_time_us", "write_access_time_us")
_COUNTS = ("requests", "bytes", "ios", "errors", "order_inversions")
"""Name endings of integer columns without nulls."""
_TIMES_OF_A_RUN = ("command_s", "sync_s", "user_s", "system_s")
_COUNTS_OF_A_RUN = ("read_ios", "write_ios", "read_bytes", "write_bytes")


def judged_report(report: Mapping[str, Any]) -> tuple[Facts, str | None]:
    """Return the valid part of a replay's report, and why the replay is unsound, or None.

    Values that an engine does not report are None, which is not a fault. A replay that ended early may have moved
    nothing.
    """
    reasons = [because(NOT_A_NUMBER, f"{name} is not a finite number") for name in _not_finite(report)]
    complete = not report["partial"] and report["state"] == "finished"
    for names, negative, zero in (
        (_DURATIONS, NO_DURATION, NO_DURATION),
        (_RATES, NEGATIVE_RATE, NO_IO),
        (_ACCESS_TIMES, NEGATIVE_LATENCY, None),
    ):
        reasons += _not_positive({name: report.get(name) for name in names}, negative, zero if complete else None)
    for spread in (report["latency_us"], report.get("response_us") or {}):
        reasons += _not_positive(spread, NEGATIVE_LATENCY, None)
    return _cleaned(report), next(iter(reasons), None)


def judged_run(line: Mapping[str, Any]) -> tuple[Facts, str | None]:
    """Judge the journal's line of an application run, like `judged_report`; its duration is never None."""
    numbers = {name: line.get(name) for name in ("duration_s", *_TIMES_OF_A_RUN, *_COUNTS_OF_A_RUN)}
    reasons = [because(NOT_A_NUMBER, f"{name} is not a finite number") for name in numbers if _is_bad(numbers[name])]
    reasons += _not_positive({"duration_s": line["duration_s"]}, NO_DURATION, NO_DURATION)
    reasons += _not_positive({name: numbers[name] for name in _TIMES_OF_A_RUN}, NO_DURATION, None)
    reasons += _not_positive({name: numbers[name] for name in _COUNTS_OF_A_RUN}, NEGATIVE_RATE, None)
    cleaned = _cleaned(line)
    cleaned["duration_s"] = 0.0 if cleaned["duration_s"] is None else cleaned["duration_s"]
    return cleaned, next(iter(reasons), None)


def uncounted(unsound: str | None, counted: bool, taint_reason: str | None) -> Facts:
    """Return the column `counted`; an unsound run is also tainted, for the reason `unsound`."""
    if unsound is None:
        return {"counted": counted}
    return {"counted": False, "tainted": True, "taint_reason": "; ".join(filter(None, (unsound, taint_reason)))}


def _not_positive(numbers: Mapping[str, Any], negative: str, zero: str | None) -> Iterator[str]:
    """Yield reasons against negative numbers, and against zero if `zero` names that fault."""
    for name, value in numbers.items():
        if isinstance(value, int | float):
            if value < 0:
                yield because(negative, f"{name} is below zero")
            elif value == 0 and zero is not None:
                yield because(zero, f"{name} is zero")


def _is_bad(value: object) -> bool:
    """Return whether a value is present but not a finite number."""
    return value is not None and (not isinstance(value, int | float) or not math.isfinite(value))


def _not_finite(report: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield names of numbers that are not finite; for the judged quantities also names of texts."""
    for name, value in report.items():
        if isinstance(value, Mapping):
            yield from _not_finite(value, f"{prefix}{name} ")
        elif isinstance(value, list):
            for item in value:
                yield from _not_finite({name: item}, prefix) if isinstance(item, Mapping | float) else ()
        elif isinstance(value, float) and not math.isfinite(value):
            yield f"{prefix}{name}"
        elif not prefix and name in (*_DURATIONS, *_RATES, *_ACCESS_TIMES) and _is_bad(value):
            yield name


def _cleaned(value: Any, name: str = "") -> Any:
    """Replace invalid and negative numbers by None, counts by 0."""
    if isinstance(value, Mapping):
        return {key: _cleaned(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item, name) for item in value]
    judged = name in (*_DURATIONS, *_RATES, *_ACCESS_TIMES, *_TIMES_OF_A_RUN, *_COUNTS_OF_A_RUN)
    below = judged and isinstance(value, int | float) and value < 0
    if below or (judged and _is_bad(value)) or (isinstance(value, float) and not math.isfinite(value)):
        return 0 if name.endswith(_COUNTS) else None
    return value


_AS_IN_THE_JOURNAL = (
    "step", "phase", "phase_value", "phase_pass", "application", "cold", "duration_s", "command_s", "sync_s",
    "exit_status", "read_ios", "write_ios", "read_bytes", "write_bytes", "user_s", "system_s", "max_rss_bytes",
)  # fmt: skip


def application_runs(
    lines: Iterable[Mapping[str, Any]],
    steps: Sequence[Mapping[str, Any]],
    key: Mapping[str, Any],
    telemetry: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> pd.DataFrame:
    """Return table `application_runs` from the journal's `lines`, in order; empty without application runs.

    `steps` are the steps of the plan; `key` has the columns that identify the recording; `telemetry` returns the
    telemetry columns of a line. A run with invalid or negative numbers, or without duration, does not count;
    `taint_reason` says why.
    """
    rows: list[dict[str, Any]] = []
    after_gap = False
    for line in lines:
        after_gap |= line["event"] == "gap"
        if line["event"] != "application":
            continue
        facts, unsound = judged_run(line)
        measured = telemetry(line)
        rows.append(
            {
                **key,
                **{name: facts.get(name) for name in _AS_IN_THE_JOURNAL},
                "repeat": line["run"],
                "asked_passes": steps[line["step"]]["application"]["until"].get("passes"),
                "simulated_from": line.get("trace"),
                "after_gap": after_gap,
                **measured,
                **uncounted(unsound, not line["cold"], measured.get("taint_reason")),
            }
        )
        after_gap = False
    if not rows:
        return pd.DataFrame(columns=APPLICATION_RUNS.names)
    return pa.Table.from_pylist(rows, schema=APPLICATION_RUNS).to_pandas()
