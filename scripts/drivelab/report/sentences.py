"""A delta as a sentence that stands by itself."""

from __future__ import annotations

from drivelab.analysis.verdict import BETTER, NOT_COMPARED, SAME, WORSE
from drivelab.report.inputs import Row
from drivelab.report.numbers import is_missing, metric_name, number, percent, quantity, unit_of
from drivelab.report.outcome import interval, is_time, margin, outcome, rests_on_one_recording, why

WITHIN = ", within one recording"
VERBS = {BETTER: "beats", WORSE: "trails"}


def sentence(delta: Row, confidence: str = "") -> str:
    """For example `op28 beats op7 at RND 4KiB 0/100 by 62 % (2,310 against 1,428 IOPS; Δ +58 % to +66 %)`.

    With `, within one recording` where the scatter is of no more.
    Nobody beats anybody where the verdict is another. `confidence` names the interval, as `95 % confidence`.
    """
    drive, basis = delta["comparison"], delta["basis"]
    unit = unit_of(delta["metric"], delta["unit"])
    name = metric_name(delta["metric"])
    place = _place(delta["cell_label"], "" if name in {unit, "throughput"} else name)
    reason, said = why(delta), outcome(delta)
    colon = f": {reason}" if reason else ""
    if said == NOT_COMPARED:
        return f"{drive} is not compared with {basis} {place}{colon}."
    if is_missing(delta["delta_pct"]):
        return f"{drive} and {basis} cannot be compared {place}{colon}."
    change = float(delta["delta_pct"])
    span = interval(delta)
    within = f"; Δ {span}{f', {confidence}' if confidence else ''}" if span else ""
    values = f"({number(delta['comparison_value'])} against {quantity(delta['basis_value'], unit)}{within})"
    scope = WITHIN if rests_on_one_recording(delta) else ""
    if said in VERBS:
        return f"{drive} {VERBS[said]} {basis} {place}{_by(delta, change)} {values}{scope}."
    told = f"{'Δ ' if is_time(delta) else ''}{percent(change, signed=True)}"
    if said == SAME:
        return f"{drive} is the same as {basis} {place} within ±{margin(delta)}: {told} {values}{scope}."
    return f"{drive} against {basis} {place}: {told} {values}, cannot tell{colon}."


def _by(delta: Row, change_pct: float) -> str:
    """How large a difference is; of a time as a multiple: `by 125 %` would be a time below nothing."""
    if not is_time(delta):
        return f" by {percent(abs(change_pct))}"
    ratio = 1 + change_pct / 100  # of the basis to the comparison
    if ratio <= 0:  # nothing was to be waited for on one of the sides
        return ""
    times, words = (ratio, "as fast") if ratio >= 1 else (1 / ratio, "as long")
    return f", {times:.2f} times {words}" if times < _LARGE else f", {number(times)} times {words}"


_LARGE = 10
"""Times as much from which on two decimals say nothing."""


def _place(label: str, metric: str) -> str:
    if label.startswith(("replay ", "set of ")):
        return f"in {metric or 'throughput'} of the {label}"
    if label.startswith("application "):
        return f"in {metric} of {label}"
    return f"in {metric} at {label}" if metric else f"at {label}"
