"""A row of `deltas` in words: verdict, reasons, interval, unintended differences."""

from __future__ import annotations

from collections.abc import Iterable

from drivelab.analysis.verdict import BETTER, CANNOT_TELL, NOT_COMPARED, SAME, WORSE
from drivelab.criteria.taint import causes, digest
from drivelab.report.inputs import Inputs, Row
from drivelab.report.numbers import DASH, MISSING, is_missing, percent, quantity

TONES = {BETTER: "good", WORSE: "bad"}
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


def rests_on_one_recording(delta: Row) -> bool:
    """Return whether there is a verdict without any scatter between recordings."""
    return outcome(delta) in (BETTER, WORSE, SAME) and delta["scope"] != "recordings"


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


def also_differs(inputs: Inputs, delta: Row) -> str:
    """Return the unintended differences between the two drives; empty if there are none."""
    rows = inputs.differences_of(delta["measurement"], delta["basis"], delta["comparison"])
    facets = [str(row["facet"]) for row in rows if not row["intended"]]
    return f"also differs: {', '.join(facets)}" if facets else ""


_UNKNOWN = "reason not recorded"


def tainted(rows: Iterable[Row]) -> list[Row]:
    """Return the tainted rows of cells or replays."""
    return [row for row in rows if row.get("tainted") is True]


def taint_reasons(rows: Iterable[Row]) -> str:
    """Summarise the taint reasons of rows."""
    return "; ".join(digest(_text(row) for row in rows))


def taint_note(rows: Iterable[Row]) -> str:
    """Return a note for a table based on these cells or replays; empty if no row is tainted."""
    tainted_rows = tainted(rows)
    return f"{len(tainted_rows)} tainted: {taint_reasons(tainted_rows)}." if tainted_rows else ""


def taint_mark(row: Row) -> str:
    """Return a short mark for a summary value; empty if it is not tainted."""
    return "" if is_missing(row.get("taint_reason")) else f"tainted: {', '.join(causes([str(row['taint_reason'])]))}"


def _text(row: Row) -> str:
    return _UNKNOWN if is_missing(row.get("taint_reason")) else str(row["taint_reason"])
