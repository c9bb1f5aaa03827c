"""What a row of `deltas` says in words: its verdict, the reason, the interval, what else differs."""

from __future__ import annotations

from collections.abc import Iterable

from drivelab.analysis.verdict import BETTER, CANNOT_TELL, NOT_COMPARED, SAME, WORSE
from drivelab.report.inputs import Inputs, Row
from drivelab.report.numbers import DASH, MISSING, is_missing, percent, quantity

TONES = {BETTER: "good", WORSE: "bad"}
"""Of a field with a verdict or a delta."""


def outcome(delta: Row) -> str:
    """The verdict on a delta, one of DELTA_VERDICTS, seen from the compared drive; without a value it is open."""
    return CANNOT_TELL if is_missing(delta["delta_pct"]) and delta["verdict"] != NOT_COMPARED else str(delta["verdict"])


def tested(delta: Row) -> bool:
    """Whether the scatter on both sides was known, so that a difference could be tested."""
    return comparable(delta) and not is_missing(delta.get("p_value", delta["delta_pct"]))


def comparable(delta: Row) -> bool:
    """Whether there is a difference: the values came about alike, and nothing forbids to compare them."""
    return not is_missing(delta["delta_pct"])


def is_time(delta: Row) -> bool:
    """Whether less is better, so that a delta of 100 % is half of the basis."""
    return bool(delta["kind"] == "time")


def delta_words(delta: Row) -> str:
    """A delta as `+62 %`; a dash where two values are there that cannot be compared: they *are* recorded."""
    if comparable(delta):
        return percent(delta["delta_pct"], signed=True)
    return MISSING if any(is_missing(delta[side]) for side in ("basis_value", "comparison_value")) else DASH


def rests_on_one_recording(delta: Row) -> bool:
    """Whether there is a verdict, and no scatter between recordings that it could rest on."""
    return outcome(delta) in (BETTER, WORSE, SAME) and delta["scope"] != "recordings"


def footnote(deltas: Iterable[Row]) -> str:
    """What the star of `verdict_cell` stands for; empty if no delta has one."""
    said = dict.fromkeys(str(part) for row in deltas for part in row["remarks"])
    return f"* {'; '.join(said)}." if said else ""


def why(delta: Row) -> str:
    """Why a verdict is no more than it is, in one text; empty where there is nothing to explain."""
    return "; ".join(whys(delta))


def whys(delta: Row) -> list[str]:
    """Why a verdict is no more than it is, part by part."""
    doubts = list(map(str, delta["doubts"]))
    if doubts or outcome(delta) != CANNOT_TELL or is_missing(delta["delta_pct"]):
        return doubts
    return [f"neither significant nor wholly within ±{margin(delta)}"]


def margin(delta: Row) -> str:
    """Up to what difference the study calls two values the same."""
    return quantity(delta["margin_pct"], "%")


def interval(delta: Row) -> str:
    """The confidence interval of a delta, as `+1.2 % to +4.0 %`; empty if there is none."""
    low, high = delta.get("interval_low_pct"), delta.get("interval_high_pct")
    if is_missing(low) or is_missing(high):
        return ""
    return f"{percent(low, signed=True)} to {percent(high, signed=True)}"


def also_differs(inputs: Inputs, delta: Row) -> str:
    """What differs between the two beside what was meant to; empty if nothing does."""
    rows = inputs.differences_of(delta["measurement"], delta["basis"], delta["comparison"])
    facets = [str(row["facet"]) for row in rows if not row["intended"]]
    return f"also differs: {', '.join(facets)}" if facets else ""
