"""A row of `deltas`: verdict, reasons, interval, and the cost of a decision."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime

from drivelab.analysis.deltas.differences import not_recorded_words, unknown
from drivelab.analysis.deltas.doubts import TOO_FEW
from drivelab.analysis.verdict import BETTER, CANNOT_TELL, NOT_COMPARED, WORSE
from drivelab.core.units import counted
from drivelab.report.inputs import Inputs, Row
from drivelab.report.numbers import DASH, MISSING, amount, duration, is_missing, percent, quantity

TONES = {**dict.fromkeys(BETTER, "good"), **dict.fromkeys(WORSE, "bad")}
"""Tone of a field with a verdict or a delta."""


def outcome(delta: Row) -> str:
    """Return the verdict on a delta, one of DELTA_VERDICTS, for the compared drive.

    A delta without a value is CANNOT_TELL, unless the drives are not compared.
    """
    return CANNOT_TELL if not comparable(delta) and delta["verdict"] != NOT_COMPARED else str(delta["verdict"])


def comparable(delta: Row) -> bool:
    """Return whether the two values have a delta: same statistic, comparison allowed."""
    return not is_missing(delta["delta_pct"])


def tested(delta: Row) -> bool:
    """Return whether the scatter of both sides is known, so that a test was possible."""
    return comparable(delta) and not is_missing(delta.get("p_value", delta["delta_pct"]))


def is_time(delta: Row) -> bool:
    """Return whether lower is better; then a delta of 100 % is half of the basis."""
    return bool(delta["kind"] == "time")


def disturbed(delta: Row) -> bool:
    """Return whether others used the host while a value was measured, and the interval of the delta includes that."""
    return not is_missing(delta.get("disturbance_pct"))


def in_few_recordings(delta: Row) -> bool:
    """Return whether nothing but too few recordings stands against a verdict."""
    doubts = [str(doubt) for doubt in delta["doubts"]]
    return comparable(delta) and bool(doubts) and all(doubt.startswith(TOO_FEW) for doubt in doubts)


def within_margin(delta: Row) -> bool:
    """Return whether a delta is within the margin of the study, whatever its interval."""
    return abs(math.log1p(float(delta["delta_pct"]) / 100)) <= math.log1p(float(delta["margin_pct"]) / 100)


def delta_words(delta: Row) -> str:
    """Format a delta as `+62 %`; a dash if both values are recorded but cannot be compared."""
    if comparable(delta):
        return percent(delta["delta_pct"], signed=True)
    return MISSING if any(is_missing(delta[side]) for side in ("basis_value", "comparison_value")) else DASH


def margin(delta: Row) -> str:
    """Return the largest difference that the study calls the same."""
    return quantity(delta["margin_pct"], "%")


def interval(delta: Row) -> str:
    """Format the confidence interval of a delta as `+1.2 % to +4.0 %`; empty if there is none."""
    ends = delta.get("interval_low_pct"), delta.get("interval_high_pct")
    return "" if any(map(is_missing, ends)) else " to ".join(percent(end, signed=True) for end in ends)


def footnote(deltas: Iterable[Row]) -> str:
    """Return the remarks that the star of a verdict refers to; empty if no delta has any."""
    remarks = dict.fromkeys(str(remark) for row in deltas for remark in row["remarks"])
    return f"* {'; '.join(remarks)}." if remarks else ""


def whys(delta: Row) -> list[str]:
    """Return the reasons for an uncertain verdict."""
    doubts = list(map(str, delta["doubts"]))
    if doubts or outcome(delta) != CANNOT_TELL or not comparable(delta):
        return doubts
    return [f"the difference is neither significant nor wholly within ±{margin(delta)}"]


def also_differs(inputs: Inputs, delta: Row) -> str:
    """Return the unintended differences between the two drives, and how many conditions are not recorded.

    The result is empty if there are no such differences, and nothing is unknown that should be equal.
    """
    rows = inputs.differences_of(delta["measurement"], delta["basis"], delta["comparison"])
    unrecorded = [row for row in rows if unknown(row["basis_value"], row["comparison_value"])]
    facets = [str(row["facet"]) for row in rows if not row["intended"] and row not in unrecorded]
    parts = [f"also differs: {', '.join(facets)}"] if facets else []
    if not all(row["intended"] for row in unrecorded):
        parts.append(not_recorded_words(len(unrecorded)))
    return "; ".join(parts)


def settled_by(inputs: Inputs, deltas: Iterable[Row]) -> str:
    """Return what would decide comparisons, and its cost; empty if unknown.

    For example `2 more recordings of each drive, about 50 min, 1.2 TiB written`. The cost is that of the recordings so
    far, with their preconditioning, in all measurements of the deltas.
    """
    costs: dict[str, list[tuple[float, float] | None]] = {}
    for delta in {row["measurement"]: row for row in deltas if not is_missing(row.get("recordings_needed"))}.values():
        needed = int(delta["recordings_needed"])
        more = {str(delta[side]): max(needed - int(delta[f"{side}_n"]), 0) for side in ("basis", "comparison")}
        counts = set(more.values())
        of_each = f"{counted(max(counts), 'more recording')} of each drive" if len(counts) == 1 else ""
        words = of_each or " and ".join(f"{counted(n, 'more recording')} of {drive}" for drive, n in more.items() if n)
        if counts != {0}:
            costs.setdefault(words, []).extend(
                _cost(inputs, drive, str(delta["measurement"]), count) for drive, count in more.items() if count
            )
    return "; ".join(f"{words}{_priced(parts)}" for words, parts in costs.items())


def _priced(parts: list[tuple[float, float] | None]) -> str:
    """Return the sum of costs, as `, about 50 min, 1.2 TiB written`; nothing if one is unknown."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return ""
    seconds, written = (sum(column) for column in zip(*known, strict=True))
    return f", about {duration(round(seconds))}{f', {amount(written)} written' if written else ''}"


def _cost(inputs: Inputs, drive: str, measurement: str, count: int) -> tuple[float, float] | None:
    """Return seconds and bytes of `count` more recordings; None if the recordings so far do not show it."""
    plans = [plan for plan in inputs.plans_of((drive, measurement)) if not is_missing(plan.get("finished"))]
    if not plans:
        return None
    cells = inputs.frame_of("cells", (drive, measurement))
    written = float(cells["bytes_written"].sum()) if "bytes_written" in cells else 0.0
    written += sum(plan.get("filled_bytes") or 0 for plan in plans)
    seconds = sum(
        (datetime.fromisoformat(plan["finished"]) - datetime.fromisoformat(plan["started"])).total_seconds()
        for plan in plans
    )
    return count * seconds / len(plans), count * written / len(plans)
