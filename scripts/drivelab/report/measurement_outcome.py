"""A row of `deltas` in words: verdict, reasons, interval, unintended differences."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime

from drivelab.analysis import limits
from drivelab.analysis.deltas.differences import not_recorded_words, unknown
from drivelab.analysis.deltas.doubts import TOO_FEW
from drivelab.analysis.verdict import BETTER, CANNOT_TELL, HOST_LIMITED, NOT_COMPARED, WORSE
from drivelab.core.units import counted
from drivelab.criteria.host_limit import most_severe
from drivelab.criteria.taint import causes, digest
from drivelab.report.inputs import Inputs, Row
from drivelab.report.numbers import DASH, MISSING, amount, duration, is_missing, percent, quantity
from drivelab.tables.labels import KINDS

TONES = {**dict.fromkeys(BETTER, "good"), **dict.fromkeys(WORSE, "bad")}
"""Tone of a field with a verdict or a delta."""


def outcome(delta: Row) -> str:
    """Return the verdict on a delta, one of DELTA_VERDICTS, for the compared drive.

    A delta without a value is CANNOT_TELL, unless the drives are not compared.
    """
    return CANNOT_TELL if is_missing(delta["delta_pct"]) and delta["verdict"] != NOT_COMPARED else str(delta["verdict"])


def tested(delta: Row) -> bool:
    """Return whether the scatter of both sides is known, so that a test was possible."""
    return comparable(delta) and not is_missing(delta.get("p_value", delta["delta_pct"]))


def comparable(delta: Row) -> bool:
    """Return whether the two values have a delta: same statistic, comparison allowed."""
    return not is_missing(delta["delta_pct"])


def is_time(delta: Row) -> bool:
    """Return whether lower is better; then a delta of 100 % is half of the basis."""
    return bool(delta["kind"] == "time")


def delta_words(delta: Row) -> str:
    """Format a delta as `+62 %`; a dash if both values are recorded but cannot be compared."""
    if comparable(delta):
        return percent(delta["delta_pct"], signed=True)
    return MISSING if any(is_missing(delta[side]) for side in ("basis_value", "comparison_value")) else DASH


def in_few_recordings(delta: Row) -> bool:
    """Return whether nothing but too few recordings stands against a verdict."""
    doubts = [str(doubt) for doubt in delta["doubts"]]
    return comparable(delta) and bool(doubts) and all(doubt.startswith(TOO_FEW) for doubt in doubts)


def within_margin(delta: Row) -> bool:
    """Return whether a delta is within the margin of the study, whatever its interval."""
    return abs(math.log1p(float(delta["delta_pct"]) / 100)) <= math.log1p(float(delta["margin_pct"]) / 100)


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


def footnote(deltas: Iterable[Row]) -> str:
    """Return the remarks that the star of `verdict_cell` refers to; empty if no delta has any."""
    remarks = dict.fromkeys(str(remark) for row in deltas for remark in row["remarks"])
    return f"* {'; '.join(remarks)}." if remarks else ""


def why(delta: Row) -> str:
    """Return the reasons for an uncertain verdict as one text; empty if there are none."""
    return "; ".join(whys(delta))


def whys(delta: Row) -> list[str]:
    """Return the reasons for an uncertain verdict."""
    doubts = list(map(str, delta["doubts"]))
    if doubts or outcome(delta) != CANNOT_TELL or is_missing(delta["delta_pct"]):
        return doubts
    return [f"the difference is neither significant nor wholly within ±{margin(delta)}"]


def margin(delta: Row) -> str:
    """Return the largest difference that the study calls the same."""
    return quantity(delta["margin_pct"], "%")


def interval(delta: Row) -> str:
    """Format the confidence interval of a delta as `+1.2 % to +4.0 %`; empty if there is none."""
    low, high = delta.get("interval_low_pct"), delta.get("interval_high_pct")
    if is_missing(low) or is_missing(high):
        return ""
    return f"{percent(low, signed=True)} to {percent(high, signed=True)}"


BUSY = f"measured on a {limits.BUSY}"


def disturbed(delta: Row) -> bool:
    """Return whether others used the host while a value was measured, and the interval of the delta includes that."""
    return not is_missing(delta.get("disturbance_pct"))


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


_UNKNOWN = "reason not recorded"


def tainted(rows: Iterable[Row]) -> list[Row]:
    """Return the tainted rows of cells or replays."""
    return [row for row in rows if row.get("tainted") is True]


def taint_reasons(rows: Iterable[Row]) -> str:
    """Summarise the taint reasons of rows."""
    return "; ".join(digest(_text(row) for row in rows))


def taint_note(rows: Iterable[Row]) -> str:
    """Return a note on disturbances and host for a table of these cells or replays; empty if there are none."""
    all_rows = list(rows)
    tainted_rows = tainted(all_rows)
    taints = f"{len(tainted_rows)} tainted: {taint_reasons(tainted_rows)}." if tainted_rows else ""
    return " ".join(filter(None, (taints, host_note(all_rows))))


def taint_mark(row: Row) -> str:
    """Return a short mark for a summary value; empty if it is not tainted."""
    return "" if is_missing(row.get("taint_reason")) else f"tainted: {', '.join(causes([str(row['taint_reason'])]))}"


def host_mark(row: Row) -> str:
    """Return a short mark for a value that the host may limit; empty for others.

    The drive's own speed is at least the value, and its time at most.
    """
    if is_missing(row.get("host_limit")):
        return ""
    return f"at {'most' if row.get('kind', KINDS.get(row.get('metric', ''))) == 'time' else 'least'}: {HOST_LIMITED}"


def marks(row: Row | None) -> str:
    """Return all short marks of a summary value; empty for a missing one."""
    return "" if row is None else ", ".join(filter(None, (host_mark(row), taint_mark(row))))


def host_limit_of(rows: Iterable[Row]) -> str | None:
    """Return why the host may be the limit of any of these cells or values."""
    return most_severe(str(row["host_limit"]) for row in rows if host_mark(row))


def host_note(rows: Iterable[Row]) -> str:
    """Return a note for a table based on these cells or values; empty if the host limits none."""
    reason = host_limit_of(rows)
    return "" if reason is None else f"Host-limited: {reason}."


def notes(rows: Iterable[Row]) -> str:
    """Return the notes on host and disturbances for a table of summary values; empty if there are none."""
    values = list(rows)
    tainted_values = [row for row in values if taint_mark(row)]
    taints = f"Tainted: {taint_reasons(tainted_values)}." if tainted_values else ""
    return " ".join(filter(None, (host_note(values), taints)))


def _text(row: Row) -> str:
    return _UNKNOWN if is_missing(row.get("taint_reason")) else str(row["taint_reason"])
