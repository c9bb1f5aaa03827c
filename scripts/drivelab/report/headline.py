"""The headline tests of a study and the verdict on them, as sentences for report and terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from drivelab.analysis.deltas.doubts import PRINTED, taint_causes
from drivelab.analysis.deltas.inference import one_of_each
from drivelab.analysis.exclusions import WHOLE
from drivelab.analysis.limits import limited
from drivelab.analysis.values.load_values import METRIC as IOPS_WITHIN_LIMIT
from drivelab.analysis.verdict import CANNOT_TELL, DECIDED, DELTA_VERDICTS, NOT_COMPARED, SAME, direction
from drivelab.core.grouping import grouped
from drivelab.core.units import counted, some
from drivelab.criteria.repeats import FEWEST
from drivelab.criteria.taint import DISTURBED, FOREIGN
from drivelab.report.delta import (
    comparable,
    comparative,
    confidence,
    delta_words,
    disturbed,
    in_few_recordings,
    margin,
    outcome,
    sentence,
    settled_by,
    whys,
    within_margin,
)
from drivelab.report.inputs import Inputs, Row
from drivelab.report.marks import BUSY
from drivelab.report.numbers import DASH, is_missing, names, percent
from drivelab.tables import io
from drivelab.tables.labels import SCORE

_SPEED_FIRST = ("iops", "bandwidth_mib_s", "mean_latency_us", "duration_s")
_TIME_FIRST = ("access_time_us", "duration_s", "bandwidth_mib_s", "mean_latency_us", "iops")
"""For replays with the application's timing: the trace determines the IOPS, the drive only the latencies."""
_MOST_NAMED = 3
"""Number of excluded recordings that are named."""
_NOT_TESTED = "not tested"
_UNDECIDED = {SAME: "the same", CANNOT_TELL: "undecided", _NOT_TESTED: "not tested", NOT_COMPARED: "not compared"}
_MOST_REASONS = 3
_REMEDIES = {
    "something else wrote to a drive": "without other writers on the drives",
    "an array was in another state": "with arrays in the wanted state",
    "the host was disturbed": "on an idle host",
    "a drive was too hot": "with better cooling",
}
"""What helps, by the reason of a doubt in short."""
_WRITTEN, _OTHER_STATE, _DISTURBED, _HOT = _REMEDIES


def headline_inputs(tables: Path, recordings: Sequence[str], basis: str) -> Inputs:
    """Return what headlines need, from the folder with a study's tables."""
    of_recordings = {
        name: [tables / recording / f"{name}.parquet" for recording in recordings]
        for name in ("steady_state", "replays")
    }
    paths = {name: [tables / f"{name}.parquet"] for name in ("summary", "deltas", "conditions")} | of_recordings
    cells = [tables / recording / "cells.parquet" for recording in recordings]
    known_by = ("measurement", "cell_label", "pattern", "rate_iops")
    frames = {name: io.read(files, name) for name, files in paths.items()}
    return Inputs.of(frames | {"cells": io.read_columns(cells, "cells", known_by)}, {"basis": basis}, ())


def subject_of(row: Row) -> tuple[str, str, str]:
    """Return what identifies a value of a drive: measurement, cell label, metric."""
    return row["measurement"], row["cell_label"], row["metric"]


def headline_tests(inputs: Inputs, table: str) -> list[Row]:
    """Return the rows of `deltas` or `summary` that a study is known by.

    They are scores, and of each measurement the tracked variables, else loads, else the most telling metric of each
    cell.
    """
    rows = inputs.tables[table]
    chosen = [row for row in rows if row["protocol"] == SCORE]
    by_measurement = grouped(rows, lambda row: row["measurement"])
    for measurement in inputs.measurements:
        of_one = by_measurement.get(measurement, [])
        tracked = [row for variable in inputs.tracked(measurement) for row in of_one
                   if (row["cell_label"], row["metric"]) == variable]  # fmt: skip
        limited = [row for row in of_one if row["metric"] == IOPS_WITHIN_LIMIT]
        chosen += tracked or limited or _most_telling(inputs, measurement, of_one)
    return chosen


def _most_telling(inputs: Inputs, measurement: str, of_one: list[Row]) -> Iterator[Row]:
    preferred = _TIME_FIRST if inputs.where("replays", measurement=measurement) else _SPEED_FIRST
    by_label = grouped(of_one, lambda row: row["cell_label"])
    sets = [label for label in by_label if label.startswith("set of ")]
    for label in sets or by_label:  # a set represents its traces
        metrics = {row["metric"] for row in by_label[label]}
        leading = inputs.leading(measurement, label)
        best = next((metric for metric in (leading, *preferred) if metric in metrics), by_label[label][0]["metric"])
        yield from (row for row in by_label[label] if row["metric"] == best)


def first_headlines(inputs: Inputs, most: int = 3) -> list[str]:
    """Return the first headline of each measurement for the terminal, at most `most`; for a single drive, its values.

    Each has the caveats that must accompany a number shown alone.
    """
    summary, chosen = inputs.frame("summary"), dict[str, tuple[Row, str]]()
    for delta in headline_tests(inputs, "deltas"):
        words = f"{delta_words(delta):>8}  {sentence(inputs, delta)}"
        chosen.setdefault(str(delta["measurement"]), (delta, words))
    for row in [] if chosen else headline_tests(inputs, "summary"):
        text = f"{row['cell_label']} {row['metric']}: {row['value']:,.6g} {row['unit']} ({row['verdict']})"
        chosen.setdefault(str(row["measurement"]), (row, text))
    lines = []
    for measurement, (row, text) in list(chosen.items())[:most]:
        subject = ["measurement", "cell_label", "metric"]
        values = summary[(summary[subject] == list(subject_of(row))).all(axis="columns")]
        caveats = ", ".join(limited(values, inputs.frame("conditions")))
        lines.append(f"{measurement}{f' ({caveats})' if caveats else ''}: {text}")
    return lines


def left_out_words(exclusions: Path) -> str:
    """Return a sentence on the excluded evidence, from the study's table `exclusions`.

    It counts the exclusions by fault, names the recordings that are excluded whole, and says where to read more.
    """
    excluded = io.read(exclusions, "exclusions")
    if excluded.empty:
        return "Nothing was excluded from the results."
    counts = excluded["fault"].value_counts(sort=False)
    faults = ", ".join(f"{fault} {count}" for fault, count in counts.items())
    items = f"{counted(len(excluded), 'item')} {'was' if len(excluded) == 1 else 'were'}"
    whole = list(dict.fromkeys(excluded.loc[excluded["place"] == WHOLE, "recording"]))
    named = f", with the whole of {some(whole, _MOST_NAMED)}" if whole else ""
    return (
        f"{items} excluded from the results ({faults}){named}: see the top of the report, or "
        f'drivelab query "FROM exclusions" --results {exclusions.parent.parent}'
    )


def lead(inputs: Inputs) -> tuple[str, ...]:
    """Return the verdict in one sentence for each compared drive, models first."""
    deltas = headline_tests(inputs, "deltas")
    if not deltas:
        only = inputs.drives[0] if len(inputs.drives) == 1 else ""
        return (f"Only {only} was measured, so there is no comparison." if only else "There are no deltas to compare.",)
    headline = set(map(subject_of, deltas))
    of_models = [row for row in inputs.tables["model_deltas"] if subject_of(row) in headline]
    return tuple(
        f"{whose}{lead_of(inputs, of_one)}"
        for whose, rows in (("As models: ", of_models), ("", deltas))
        for of_one in grouped(rows, lambda row: row["comparison"]).values()
    )


def lead_of(inputs: Inputs, deltas: list[Row]) -> str:
    """Return the verdict on one compared drive in one sentence, and what would settle it in another."""
    deltas = _comparisons(deltas)
    drive, basis, total = deltas[0]["comparison"], deltas[0]["basis"], len(deltas)
    decided = [delta for delta in deltas if outcome(delta) in DECIDED]
    few = [delta for delta in deltas if in_few_recordings(delta)]
    if few and not decided:
        return _in_these_recordings(inputs, few, total)
    groups, every = grouped(deltas, _group), _every(total)
    loaded = sum(map(disturbed, decided))
    some_loaded = "" if loaded == len(decided) else f"{loaded} of these tests were "
    busy = f"; {some_loaded}{BUSY}" if loaded else ""
    reasons = Counter(reason for row in deltas for reason in dict.fromkeys(map(_in_short, whys(row))))
    doubts = "; ".join(reason if count == total else f"{reason} (in {count})"
                       for reason, count in reasons.most_common(_MOST_REASONS))  # fmt: skip
    remedies = " and ".join(advice for reason, advice in _REMEDIES.items() if reason in reasons)
    remedy = f" Repeat the measurement {remedies}." if remedies else ""
    if groups.keys() == {SAME}:
        return f"{drive} and {basis} are equal within {margin(deltas[0])} in {every}{busy}."
    if groups.keys() == {NOT_COMPARED}:
        return f"{drive} and {basis} are not compared: they differ in something that the study forbids."
    if groups.keys() <= {_NOT_TESTED, NOT_COMPARED}:
        values = sorted(float(row["delta_pct"]) for row in deltas if comparable(row))
        ends = dict.fromkeys(percent(value, signed=True) for value in (*values[:1], *values[-1:]))
        span = f" (Δ {' to '.join(ends)})" if ends else ""
        of_deltas = [str(doubt) for row in deltas for doubt in row["doubts"]]
        why = f"no test is possible in {total} headline tests{f' ({doubts})' if of_deltas else ''}"
        if of_deltas and all(PRINTED in doubt for doubt in of_deltas):
            why = f"{counted(total, 'printed value')} with unknown scatter"
        return f"No verdict on {drive} against {basis}: {why}{span}.{remedy}"
    if groups.keys() == {CANNOT_TELL}:
        any_test = every if total == 1 else f"any of the {total} headline tests"
        return f"No verdict on {drive} against {basis} in {any_test}: {doubts}.{remedy}"
    rest = [f"{adjective} in {len(groups[name])}" for name, adjective in _UNDECIDED.items() if name in groups]
    if tests := _in_tests(groups, basis, total, rest):
        return f"{drive} is {tests}{busy}."
    return f"{drive} against {basis} in {total} headline tests: {names(rest)}{busy}."


def _in_short(doubt: str) -> str:
    causes = taint_causes(doubt)
    if not causes:
        return doubt
    if FOREIGN in causes:
        return _WRITTEN
    if "array" in causes:
        return _OTHER_STATE
    return _DISTURBED if DISTURBED & set(causes) else _HOT


def _every(total: int) -> str:
    return "the only headline test" if total == 1 else f"all {total} headline tests"


def _in_tests(groups: dict[str, list[Row]], basis: str, total: int, rest: list[str]) -> str:
    """Say in how many tests a drive is better and worse, and add the rest; empty if it is neither."""
    sides = [groups[side] for side in ("better", "worse") if side in groups]
    if not sides:
        return ""
    first, *others = sides
    tests = _every(total) if len(first) == total else f"{len(first)} of {total} headline tests"
    others_and_rest = [*(f"{_graded(deltas)} in {len(deltas)}" for deltas in others), *rest]
    return names([f"{_graded(first)} than {basis} in {tests}", *others_and_rest])


def _in_these_recordings(inputs: Inputs, few: list[Row], total: int) -> str:
    """Return the differences of too few recordings, which are no verdict, and what would make one possible."""
    drive, basis = few[0]["comparison"], few[0]["basis"]
    sides = grouped(few, lambda row: "within" if within_margin(row) else "better" if row["delta_pct"] > 0 else "worse")
    rest = [f"within {margin(few[0])} in {len(sides['within'])}"] if "within" in sides else []
    rest += [f"undecided in {total - len(few)}"] if total > len(few) else []
    tests = _in_tests(sides, basis, total, rest)
    seen = f"is {tests}" if tests else f"and {basis}, in {total} tests: {names(rest)}"
    more = settled_by(inputs, few) or f"{FEWEST} recordings of each drive"
    return f"In these recordings, {drive} {seen}. For a verdict: {more}."


def _group(delta: Row) -> str:
    """Return what to count a verdict as; _NOT_TESTED instead of CANNOT_TELL if no test was possible."""
    verdict = outcome(delta)
    return _NOT_TESTED if verdict == CANNOT_TELL and not _tested(delta) else direction(verdict) or verdict


def _tested(delta: Row) -> bool:
    """Return whether the scatter of both sides is known, so that a test was possible."""
    return comparable(delta) and not is_missing(delta.get("p_value", delta["delta_pct"]))


def _graded(deltas: list[Row]) -> str:
    """Return the range of differences of the same direction, as `62 % faster`.

    Worse times keep the delta, as `slower (Δ -17 %)`: 17 % less speed is 21 % more time.
    """
    ordered = sorted((float(row["delta_pct"]) for row in deltas), key=abs)
    better = ordered[-1] > 0
    adjective = comparative(deltas, better)
    if not better and any(row["kind"] == "time" for row in deltas):
        ends = dict.fromkeys(percent(value, signed=True) for value in (ordered[0], ordered[-1]))
        return f"{adjective} (Δ {' to '.join(ends)})"
    least, most = percent(abs(ordered[0])), percent(abs(ordered[-1]))
    return f"{most if least == most else f'{least[:-2]}{DASH}{most}'} {adjective}"


def _comparisons(deltas: Sequence[Row]) -> list[Row]:
    """Return one delta per comparison: of IOPS, throughput and mean latency of a cell, the first present."""
    values = ((row["measurement"], row["comparison"], row["cell_label"], row["metric"]) for row in deltas)
    return [deltas[place] for place in one_of_each(values)]


def terms(inputs: Inputs) -> str:
    """Explain the verdicts of this study, with margin and counts; empty if nothing is compared."""
    deltas = inputs.tables["deltas"]
    if not deltas:
        return ""
    comparisons = _comparisons(deltas)
    counts = Counter(_NOT_TESTED if _group(row) == _NOT_TESTED else outcome(row) for row in comparisons)
    tally = ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in (*DELTA_VERDICTS, _NOT_TESTED) if counts[verdict])
    family = len(_comparisons([row for row in deltas if not is_missing(row.get("p_adjusted", row["delta_pct"]))]))
    pairs = len({(row["basis"], row["comparison"]) for row in deltas})
    margins = " or ".join(dict.fromkeys(map(margin, deltas)))
    level, growth = confidence(inputs), inputs.study.get("growth")
    counts_words = (
        f"All {len(comparisons):,} comparisons: {tally}. IOPS, throughput and mean latency of a cell count as one "
        f"comparison, by the first of them; {len(deltas):,} values are compared."
    )
    if not family:
        doubted = any(map(_tested, comparisons))
        cause = "each comparison has a doubt" if doubted else f"no comparison has {FEWEST} recordings on both sides"
        return f"{counts_words} No verdict uses a statistical test: {cause}."
    among = "the pair" if pairs == 1 else f"all {pairs} pairs"
    return (
        f"{counts_words} Faster or slower: the difference between the drives is significant after adjustment for the "
        f"{family:,} comparisons tested in {among} (Benjamini{DASH}Hochberg). Beyond the margin: its whole "
        f"interval{f' ({level}, adjusted)' if level else ''} lies beyond {margins}. Same within the "
        f"margin: the whole interval lies within. Cannot tell: none of these, or a doubt applies."
        f"{_LOADED if any(map(disturbed, deltas)) else ''}{_growth(growth) if growth else ''}"
    )


_LOADED = (
    f" Of what was {BUSY}, the interval includes the most that the load may have changed, and a difference has a "
    "verdict only if it lies beyond the margin."
)


def _growth(growth: Row) -> str:
    """Say how a growing study chose its runs."""
    looks = f" Looks that added runs: {' '.join(growth['reasons'])}" if growth["reasons"] else ""
    return (
        f" The study began with {growth['least']} runs and adds one at a time, up to {growth['most']}, until its "
        "headline tests are decided at the margin. The level of each look is stricter, so that all looks together "
        f"keep the confidence.{looks}"
    )
