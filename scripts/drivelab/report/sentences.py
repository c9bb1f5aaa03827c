"""Workloads and differences in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from drivelab.analysis.deltas.doubts import PRINTED, numbered, taint_causes
from drivelab.analysis.verdict import BETTER, CANNOT_TELL, FASTER, NOT_COMPARED, SAME, SLOWER, WORSE
from drivelab.core.units import counted, parse_size
from drivelab.criteria.repeats import FEWEST
from drivelab.criteria.taint import DISTURBED, FOREIGN
from drivelab.report.delta import (
    also_differs,
    comparable,
    delta_words,
    disturbed,
    in_few_recordings,
    interval,
    is_time,
    margin,
    outcome,
    whys,
    within_margin,
)
from drivelab.report.inputs import Inputs, Row
from drivelab.report.marks import BUSY
from drivelab.report.numbers import TIMES, amount, metric_name, percent, rounded, unit_of

_NBSP = "\u00a0"
_NOTATION = re.compile(
    r"(?P<pattern>RND|SEQ) (?P<least>\d+[KMGT]?i?B)(-(?P<most>\d+[KMGT]?i?B))?(?P<mix> mix)? "
    r"(?P<read>\d+)/(?P<write>\d+)(?P<rest>((?! T\d+Q).)*)( T(?P<threads>\d+)Q(?P<depth>\d+))?(?P<turn>.*)"
)
_IN_TEXT = re.compile(r"\b(?:RND|SEQ) \S+ \d+/\d+(?: T\d+Q\d+)?")
_DEMAND = re.compile(r"\bT\d+Q\d+\b")
_THREADS = re.compile(r"(, QD\d+) \(\d+ threads . \d+\)")
"""The split of a queue depth over threads."""
_LARGE = 10
"""Multiples from here on need no decimals."""


def workload_words(label: str) -> str:
    """Spell out a cell label: `RND 4KiB 0/100 T1Q16` as `random write 4 KiB, QD16`.

    A label in another notation, or with a second workload beside it, is returned unchanged.
    """
    match = _NOTATION.fullmatch(label)
    if match is None or ", beside " in label:
        return label
    access = "random" if match["pattern"] == "RND" else "sequential"
    mix = f"{match['read']}/{match['write']}"
    direction = {"100/0": "read", "0/100": "write"}.get(mix, f"{mix} read/write")
    sizes = " to ".join(amount(parse_size(size)) for size in (match["least"], match["most"]) if size)
    demand = ""
    if match["threads"]:
        threads, depth = int(match["threads"]), int(match["depth"])
        demand = f", QD{threads * depth}" + (f" ({threads} threads {TIMES} {depth})" if threads > 1 else "")
    return f"{access} {direction} {sizes}{match['mix'] or ''}{match['rest']}{demand}{match['turn']}"


def spelled_out(text: str) -> str:
    """Return a text with the workloads in it in words: `round 1, random read 4 KiB, QD8`."""
    return _IN_TEXT.sub(lambda match: workload_words(match[0]), text)


def loaded(label: str, load: str | None) -> str:
    """Return a cell label with threads and queue depth, such as `T1Q8`, unless it has them already."""
    if not load or _DEMAND.search(label):
        return label
    workload, comma, turn = label.partition(",")
    return f"{workload} {load}{comma}{turn}"


def brief_words(label: str, load: str | None = None) -> str:
    """Return a workload in words with its queue depth, without the split over threads."""
    return _THREADS.sub(r"\1", workload_words(loaded(label, load)))


def value_words(label: str, metric: str, load: str | None = None, joint: str = ": ") -> str:
    """Return a workload in words, with the metric unless the unit says it; spaces may break."""
    words = workload_words(loaded(label, load)).replace("\u00a0", " ")
    return words if metric in ("iops", "bandwidth_mib_s") else f"{words}{joint}{metric_name(metric)}"


def mark(numbers: tuple[int, ...]) -> str:
    """Return a reference to notes by number, as ` [1, 2]`, or nothing."""
    return f" [{', '.join(map(str, numbers))}]" if numbers else ""


def with_reasons(inputs: Inputs, deltas: Iterable[Row]) -> tuple[list[Row], tuple[str, ...]]:
    """Return the deltas with `reasons`, references to their notes as ` [1, 2]`, and the notes of their table.

    Reasons are doubts and unintended differences.
    """
    rows = list(deltas)
    marks, notes = numbered([*whys(row), *filter(None, [also_differs(inputs, row)])] for row in rows)
    return [{**row, "reasons": mark(numbers)} for row, numbers in zip(rows, marks, strict=True)], tuple(notes)


def sentence(delta: Row, confidence: str = "", settled_by: str = "") -> str:
    """Describe a delta.

    For example `op28 is 62 % faster than op7: random write 4 KiB, 2,310 vs 1,430 IOPS (Δ +58 % to +66 %).`
    `confidence` names the interval, as `95 % confidence`. `settled_by` says what would decide it.
    """
    drive, basis, verdict = delta["comparison"], delta["basis"], outcome(delta)
    workload = workload_words(delta["cell_label"])
    reason = f" Reason: {'; '.join(whys(delta))}." if whys(delta) else ""
    if verdict == NOT_COMPARED:
        return f"{drive} is not compared with {basis}: {workload}.{reason}"
    if not comparable(delta):
        return f"{drive} and {basis} cannot be compared: {workload}.{reason}"
    change = f"Δ {delta_words(delta)}"
    between = ", ".join(filter(None, (f"Δ {interval(delta)}", confidence))) if interval(delta) else ""
    values = _values(delta) + (f" ({between})" if between else "")
    if disturbed(delta) and verdict != CANNOT_TELL:
        values += f", {BUSY}"
    if verdict in (FASTER, SLOWER):
        adjective = comparative([delta], verdict in BETTER)
        return f"{drive} is {adjective} than {basis} (size unsure): {workload}, {change}, {values}."
    if verdict in (*BETTER, *WORSE):
        return f"{drive} {_compared(delta)} {basis}: {workload}, {values}."
    if verdict == SAME:
        return f"{drive} equals {basis} within ±{margin(delta)}: {workload}, {change}, {values}."
    if in_few_recordings(delta):
        seen = f"is within ±{margin(delta)} of" if within_margin(delta) else _compared(delta)
        more = settled_by or f"{FEWEST} recordings of each drive"
        return f"In these recordings, {drive} {seen} {basis}: {workload}, {values}. For a verdict: {more}."
    settled = f" What would settle it: {settled_by}." if settled_by else ""
    return f"No verdict on {drive} against {basis}: {workload}, {change}, {values}.{reason}{settled}"


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
    if not is_time(delta):
        return f"is {percent(abs(change_pct))} {adjective} than"
    ratio = 1 + change_pct / 100  # basis time to comparison time
    if ratio <= 0:  # one side had no waiting time at all
        return f"is {adjective} than"
    multiple = max(ratio, 1 / ratio)
    times = f"{multiple:.2f}" if multiple < _LARGE else rounded(multiple)
    return f"is {times} times as fast as" if ratio >= 1 else f"takes {times} times as long as"


def _values(delta: Row) -> str:
    """Return both values with their unit, and the metric unless the unit says it."""
    name, unit = metric_name(delta["metric"]), unit_of(delta["metric"], delta["unit"])
    metric = "" if name in {unit, "throughput"} else f"{name} "
    sides = f"{rounded(delta['comparison_value'])} vs {rounded(delta['basis_value'])}"
    return f"{metric}{sides}{_NBSP * bool(unit)}{unit}"


_MOST_REASONS = 3
_WRITTEN = "something else wrote to a drive"
_OTHER_STATE = "an array was in another state"
_DISTURBED = "the host was disturbed"
_HOT = "a drive was too hot"
_REMEDIES = {
    _WRITTEN: "without other writers on the drives",
    _OTHER_STATE: "with arrays in the wanted state",
    _DISTURBED: "on an idle host",
    _HOT: "with better cooling",
}


def why_in_doubt(deltas: Sequence[Row]) -> str:
    """Return the most frequent doubts, each with its number of deltas unless it concerns all."""
    reasons = _counted(deltas).most_common(_MOST_REASONS)
    return "; ".join(reason if count == len(deltas) else f"{reason} (in {count})" for reason, count in reasons)


def why_not_tested(deltas: Sequence[Row]) -> str:
    """Return the number of deltas and the reasons why their scatter is unknown."""
    doubts = [str(doubt) for row in deltas for doubt in row["doubts"]]
    if doubts and all(PRINTED in doubt for doubt in doubts):
        return f"{counted(len(deltas), 'printed value')} with unknown scatter"
    reasons = f" ({why_in_doubt(deltas)})" if doubts else ""
    return f"no test is possible in {len(deltas)} headline tests{reasons}"


def remedy(deltas: Iterable[Row]) -> str:
    """Return a sentence on what helps, with a leading space; empty if no remedy is known."""
    reasons = _counted(deltas)
    remedies = [advice for reason, advice in _REMEDIES.items() if reason in reasons]
    return f" Repeat the measurement {' and '.join(remedies)}." if remedies else ""


def _counted(deltas: Iterable[Row]) -> Counter[str]:
    return Counter(reason for row in deltas for reason in dict.fromkeys(map(_in_short, whys(row))))


def _in_short(doubt: str) -> str:
    causes = taint_causes(doubt)
    if not causes:
        return doubt
    if FOREIGN in causes:
        return _WRITTEN
    if "array" in causes:
        return _OTHER_STATE
    return _DISTURBED if DISTURBED & set(causes) else _HOT
