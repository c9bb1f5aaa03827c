"""A row of `deltas` in words: verdict, reasons, interval, values, and the cost of a decision."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime

from drivelab.analysis.deltas.differences import not_recorded_words, unknown
from drivelab.analysis.deltas.doubts import TOO_FEW, mark, numbered
from drivelab.analysis.verdict import BETTER, CANNOT_TELL, FASTER, NOT_COMPARED, SAME, SLOWER, WORSE
from drivelab.core.units import counted
from drivelab.criteria.repeats import FEWEST
from drivelab.report.inputs import Inputs, Row
from drivelab.report.marks import BUSY
from drivelab.report.numbers import (
    DASH,
    MISSING,
    NBSP,
    amount,
    duration,
    is_missing,
    metric_name,
    percent,
    quantity,
    rounded,
    unit_of,
    workload_words,
)

TONES = {**dict.fromkeys(BETTER, "good"), **dict.fromkeys(WORSE, "bad")}
"""Tone of a field with a verdict or a delta."""
_LARGE = 10
"""Multiples from here on need no decimals."""
_ADDED = "; runs added to this study cost its confidence"


def comparable(delta: Row) -> bool:
    """Return whether the two values have a delta: same statistic, comparison allowed."""
    return not is_missing(delta["delta_pct"])


def outcome(delta: Row) -> str:
    """Return the verdict on a delta, one of DELTA_VERDICTS, for the compared drive.

    A delta without a value is CANNOT_TELL, unless the drives are not compared.
    """
    return CANNOT_TELL if not comparable(delta) and delta["verdict"] != NOT_COMPARED else str(delta["verdict"])


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
    """Return the largest difference that the study calls the same, as `±5 %`."""
    return f"±{quantity(delta['margin_pct'], '%')}"


def interval(delta: Row) -> str:
    """Format the confidence interval of a delta as `+1.2 % to +4.0 %`; empty if there is none."""
    ends = delta.get("interval_low_pct"), delta.get("interval_high_pct")
    return "" if any(map(is_missing, ends)) else " to ".join(percent(end, signed=True) for end in ends)


def confidence(inputs: Inputs) -> str:
    """Return the confidence level of the intervals of deltas in words; empty if the study sets none."""
    if growth := inputs.study.get("growth"):
        return f"{quantity(growth['confidence_pct'], '%')} confidence over all looks"
    level = inputs.study.get("confidence_pct")
    return "" if is_missing(level) else f"{quantity(level, '%')} confidence"


def footnote(deltas: Iterable[Row]) -> str:
    """Return the remarks that the star of a verdict refers to; empty if no delta has any."""
    remarks = dict.fromkeys(str(remark) for row in deltas for remark in row["remarks"])
    return f"* {'; '.join(remarks)}." if remarks else ""


def whys(delta: Row) -> list[str]:
    """Return the reasons for an uncertain verdict."""
    doubts = list(map(str, delta["doubts"]))
    if doubts or outcome(delta) != CANNOT_TELL or not comparable(delta):
        return doubts
    return [f"the difference is neither significant nor wholly within {margin(delta)}"]


def with_reasons(inputs: Inputs, deltas: Iterable[Row], remedies: bool = False) -> tuple[list[Row], tuple[str, ...]]:
    """Return the deltas with `reasons`, references to their notes as ` [1, 2]`, and the notes of their table.

    Reasons are doubts, unintended differences between the two drives, and conditions that are not recorded; with
    `remedies`, also what would settle an uncertain verdict.
    """
    rows, reasons = list(deltas), []
    for delta in rows:
        pair = {name: delta[name] for name in ("measurement", "basis", "comparison")}
        found = inputs.where("differences", **pair)
        unrecorded = [row for row in found if unknown(row["basis_value"], row["comparison_value"])]
        facets = [str(row["facet"]) for row in found if not row["intended"] and row not in unrecorded]
        differs = [f"also differs: {', '.join(facets)}"] if facets else []
        if not all(row["intended"] for row in unrecorded):
            differs.append(not_recorded_words(len(unrecorded)))
        remedy = _remedy(inputs, delta) if remedies else []
        reasons.append([*whys(delta), *remedy, *(["; ".join(differs)] if differs else [])])
    marks, notes = numbered(reasons)
    return [{**row, "reasons": mark(numbers)} for row, numbers in zip(rows, marks, strict=True)], tuple(notes)


def _remedy(inputs: Inputs, delta: Row) -> list[str]:
    settled = settled_by(inputs, [delta])
    return [f"what would settle it: {settled}{_ADDED}"] if settled and outcome(delta) == CANNOT_TELL else []


def sentence(inputs: Inputs, delta: Row) -> str:
    """Describe a delta.

    For example `op28 is 62 % faster than op7: random write 4 KiB, 2,310 vs 1,430 IOPS (Δ +58 % to +66 %).`
    """
    drive, basis, verdict = delta["comparison"], delta["basis"], outcome(delta)
    workload = workload_words(delta["cell_label"])
    reason = f" Reason: {'; '.join(whys(delta))}." if whys(delta) else ""
    if verdict == NOT_COMPARED:
        return f"{drive} is not compared with {basis}: {workload}.{reason}"
    if not comparable(delta):
        return f"{drive} and {basis} cannot be compared: {workload}.{reason}"
    name, unit = metric_name(delta["metric"]), unit_of(delta["metric"], delta["unit"])
    metric = "" if name in {unit, "throughput"} else f"{name} "  # the unit says it
    sides = f"{rounded(delta['comparison_value'])} vs {rounded(delta['basis_value'])}"
    values = f"{metric}{sides}{NBSP * bool(unit)}{unit}"
    if interval(delta):
        values += f" ({', '.join(filter(None, (f'Δ {interval(delta)}', confidence(inputs))))})"
    if disturbed(delta) and verdict != CANNOT_TELL:
        values += f", {BUSY}"
    change, settled = f"Δ {delta_words(delta)}", settled_by(inputs, [delta])
    if verdict in (FASTER, SLOWER):
        adjective = comparative([delta], verdict in BETTER)
        return f"{drive} is {adjective} than {basis} (size unsure): {workload}, {change}, {values}."
    if verdict in (*BETTER, *WORSE):
        return f"{drive} {_compared(delta)} {basis}: {workload}, {values}."
    if verdict == SAME:
        return f"{drive} equals {basis} within {margin(delta)}: {workload}, {change}, {values}."
    if in_few_recordings(delta):
        seen = f"is within {margin(delta)} of" if within_margin(delta) else _compared(delta)
        more = settled or f"{FEWEST} recordings of each drive"
        return f"In these recordings, {drive} {seen} {basis}: {workload}, {values}. For a verdict: {more}."
    more = f" What would settle it: {settled}{_ADDED}." if settled else ""
    return f"No verdict on {drive} against {basis}: {workload}, {change}, {values}.{reason}{more}"


def comparative(deltas: Iterable[Row], better: bool) -> str:
    """Return `faster` or `slower`; `better` or `worse` if a metric is neither a speed nor a time."""
    of_speed = all(row["kind"] in ("speed", "time") and row["metric"] != "iops_per_watt" for row in deltas)
    return (("worse", "better"), ("slower", "faster"))[of_speed][better]


def _compared(delta: Row) -> str:
    """Return how one drive compares with the other; of a time as a multiple, since +125 % would be below zero."""
    change_pct = float(delta["delta_pct"])
    if change_pct == 0:
        return "equals"
    adjective = comparative([delta], change_pct > 0)
    if delta["kind"] != "time":
        return f"is {percent(abs(change_pct))} {adjective} than"
    ratio = 1 + change_pct / 100  # basis time to comparison time
    if ratio <= 0:  # one side had no waiting time at all
        return f"is {adjective} than"
    multiple = max(ratio, 1 / ratio)
    times = f"{multiple:.2f}" if multiple < _LARGE else rounded(multiple)
    return f"is {times} times as fast as" if ratio >= 1 else f"takes {times} times as long as"


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
    texts = []
    for words, parts in costs.items():
        known = [part for part in parts if part is not None]
        seconds, written = (sum(column) for column in zip(*known, strict=True)) if len(known) == len(parts) else (0, 0)
        price = f", about {duration(round(seconds))}{f', {amount(written)} written' if written else ''}"
        texts.append(f"{words}{price if len(known) == len(parts) else ''}")
    return "; ".join(texts)


def _cost(inputs: Inputs, drive: str, measurement: str, count: int) -> tuple[float, float] | None:
    """Return seconds and bytes of `count` more recordings; None if the recordings so far do not show it."""
    plans = [plan for plan in inputs.plans_of((drive, measurement)) if not is_missing(plan.get("finished"))]
    if not plans:
        return None
    cells = inputs.frame_of("cells", (drive, measurement))
    written = float(cells["bytes_written"].sum()) if "bytes_written" in cells else 0.0
    written += sum(plan.get("filled_bytes") or 0 for plan in plans)
    spans = (datetime.fromisoformat(plan["finished"]) - datetime.fromisoformat(plan["started"]) for plan in plans)
    return count * sum(span.total_seconds() for span in spans) / len(plans), count * written / len(plans)
