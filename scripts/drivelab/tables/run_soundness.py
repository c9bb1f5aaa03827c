"""Replays and runs of applications that are no measurement: what is left of their numbers, and what is against them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from drivelab.analysis.soundness import (
    NEGATIVE_LATENCY,
    NEGATIVE_RATE,
    NO_DURATION,
    NO_IO,
    NOT_A_NUMBER,
    because,
)

Facts = dict[str, Any]

_DURATIONS = ("duration_s", "busy_s")
_RATES = ("bandwidth_mib_s", "score")
_ACCESS_TIMES = ("access_time_us", "read_access_time_us", "write_access_time_us")
_COUNTS = ("requests", "bytes", "ios", "errors", "order_inversions")
"""Ends of the names of whole numbers, which a table must have."""
_TIMES_OF_A_RUN = ("command_s", "sync_s", "user_s", "system_s")
_COUNTS_OF_A_RUN = ("read_ios", "write_ios", "read_bytes", "write_bytes")


def judged_report(report: Mapping[str, Any]) -> tuple[Facts, str | None]:
    """The report of a replay without what is no measurement, and why the replay is unsound, or None.

    What an engine does not tell is None and no fault. One that ended early may have moved nothing.
    """
    reasons = [because(NOT_A_NUMBER, f"{name} is no finite number") for name in _not_finite(report)]
    whole = not report["partial"] and report["state"] == "finished"
    for names, negative, zero in (
        (_DURATIONS, NO_DURATION, NO_DURATION),
        (_RATES, NEGATIVE_RATE, NO_IO),
        (_ACCESS_TIMES, NEGATIVE_LATENCY, None),
    ):
        reasons += _below({name: report.get(name) for name in names}, negative, zero if whole else None)
    reasons += _below(report["latency_us"], NEGATIVE_LATENCY, None)
    return _cleaned(report), next(iter(reasons), None)


def judged_run(line: Mapping[str, Any]) -> tuple[Facts, str | None]:
    """As `judged_report`, of the journal's line of a run of an application, whose duration is never None."""
    numbers = {name: line.get(name) for name in ("duration_s", *_TIMES_OF_A_RUN, *_COUNTS_OF_A_RUN)}
    reasons = [because(NOT_A_NUMBER, f"{name} is no finite number") for name, one in numbers.items() if _is_bad(one)]
    reasons += _below({"duration_s": line["duration_s"]}, NO_DURATION, NO_DURATION)
    reasons += _below({name: numbers[name] for name in _TIMES_OF_A_RUN}, NO_DURATION, None)
    reasons += _below({name: numbers[name] for name in _COUNTS_OF_A_RUN}, NEGATIVE_RATE, None)
    cleaned = _cleaned(line)
    cleaned["duration_s"] = 0.0 if cleaned["duration_s"] is None else cleaned["duration_s"]
    return cleaned, next(iter(reasons), None)


def uncounted(unsound: str | None, counted: bool, taint_reason: str | None) -> Facts:
    """Columns that say whether a run counts; of an unsound one also that it is tainted, for that reason."""
    if unsound is None:
        return {"counted": counted}
    return {"counted": False, "tainted": True, "taint_reason": "; ".join(filter(None, (unsound, taint_reason)))}


def _below(numbers: Mapping[str, Any], negative: str, zero: str | None) -> Iterator[str]:
    """Reasons against numbers below zero, and at zero where that is a fault too."""
    for name, value in numbers.items():
        if isinstance(value, int | float):
            if value < 0:
                yield because(negative, f"{name} is below zero")
            elif value == 0 and zero is not None:
                yield because(zero, f"{name} is zero")


def _is_bad(value: object) -> bool:
    """Whether it should be a number, and is none."""
    return value is not None and (not isinstance(value, int | float) or not math.isfinite(value))


def _not_finite(report: Mapping[str, Any], of: str = "") -> Iterator[str]:
    """Names of numbers that are none; of those that a replay is judged by, a text is one too."""
    for name, value in report.items():
        if isinstance(value, Mapping):
            yield from _not_finite(value, f"{of}{name} ")
        elif isinstance(value, list):
            for one in value:
                yield from _not_finite({name: one}, of) if isinstance(one, Mapping | float) else ()
        elif isinstance(value, float) and not math.isfinite(value):
            yield f"{of}{name}"
        elif not of and name in (*_DURATIONS, *_RATES, *_ACCESS_TIMES) and _is_bad(value):
            yield name


def _cleaned(value: Any, name: str = "") -> Any:
    """Without numbers that are none, or are below zero: None in their place, 0 where something is counted."""
    if isinstance(value, Mapping):
        return {key: _cleaned(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [_cleaned(one, name) for one in value]
    judged = name in (*_DURATIONS, *_RATES, *_ACCESS_TIMES, *_TIMES_OF_A_RUN, *_COUNTS_OF_A_RUN)
    below = judged and isinstance(value, int | float) and value < 0
    if below or (judged and _is_bad(value)) or (isinstance(value, float) and not math.isfinite(value)):
        return 0 if name.endswith(_COUNTS) else None
    return value
