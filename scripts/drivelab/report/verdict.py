"""The verdict: which drive is faster at what, by how much, how certain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from drivelab.analysis.deltas.inference import one_of_each
from drivelab.analysis.values.load_values import METRIC as IOPS_WITHIN_LIMIT
from drivelab.analysis.verdict import CANNOT_TELL, DECIDED, DELTA_VERDICTS, IN_RECORDINGS, NOT_COMPARED, SAME, direction
from drivelab.core.grouping import grouped
from drivelab.criteria.repeats import FEWEST
from drivelab.report.delta import (
    comparable,
    delta_words,
    disturbed,
    in_few_recordings,
    is_time,
    margin,
    outcome,
    settled_by,
    tested,
    within_margin,
)
from drivelab.report.document import SHOWN, Headline
from drivelab.report.inputs import Inputs, Row
from drivelab.report.marks import BUSY
from drivelab.report.numbers import DASH, is_missing, names, percent, quantity
from drivelab.report.sentences import comparative, remedy, sentence, why_in_doubt, why_not_tested
from drivelab.tables.labels import SCORE

_SPEED_FIRST = ("iops", "bandwidth_mib_s", "mean_latency_us", "duration_s")
_MOST_HEADLINES = 5
_TIME_FIRST = ("access_time_us", "duration_s", "bandwidth_mib_s", "mean_latency_us", "iops")
"""For replays with the application's timing: the trace determines the IOPS, the drive only the latencies."""


def headline_deltas(inputs: Inputs) -> list[Row]:
    """Return the main deltas: of tracked variables, else of loads, else of the most telling metric of each cell."""
    return _headline(inputs, inputs.tables["deltas"])


def headline_values(inputs: Inputs) -> list[Row]:
    """Return the rows of `summary` that are chosen like the main deltas, also of a single drive."""
    return _headline(inputs, inputs.tables["summary"])


def _headline(inputs: Inputs, rows: list[Row]) -> list[Row]:
    replayed = {row["measurement"] for row in inputs.tables["replays"]}
    chosen = [row for row in rows if row["protocol"] == SCORE]
    by_measurement = grouped(rows, lambda row: row["measurement"])
    for measurement in inputs.measurements:
        of_one = by_measurement.get(measurement, [])
        tracked = [row for variable in inputs.tracked(measurement) for row in of_one
                   if (row["cell_label"], row["metric"]) == variable]  # fmt: skip
        limited = [row for row in of_one if row["metric"] == IOPS_WITHIN_LIMIT]
        preferred = _TIME_FIRST if measurement in replayed else _SPEED_FIRST
        chosen += tracked or limited or _most_telling(inputs, of_one, preferred)
    return chosen


def _most_telling(inputs: Inputs, of_one: list[Row], preferred: tuple[str, ...]) -> Iterator[Row]:
    labels = list(dict.fromkeys(row["cell_label"] for row in of_one))
    sets = [label for label in labels if label.startswith("set of ")]
    for label in sets or labels:  # a set represents its traces
        rows = [row for row in of_one if row["cell_label"] == label]
        metrics = {row["metric"] for row in rows}
        leading = inputs.leading(rows[0]["measurement"], label)
        best = next((metric for metric in (leading, *preferred) if metric in metrics), rows[0]["metric"])
        yield from (row for row in rows if row["metric"] == best)


def confidence(inputs: Inputs) -> str:
    """Return the confidence level of the delta intervals in words; empty if the study sets none."""
    if growth := inputs.study.get("growth"):
        return f"{quantity(growth['confidence_pct'], '%')} confidence over all looks"
    level = inputs.study.get("confidence_pct")
    return "" if is_missing(level) else f"{quantity(level, '%')} confidence"


def headlines(inputs: Inputs) -> tuple[Headline, ...]:
    """Return a sentence for each headline delta, in the order of the study."""
    ordered = []
    for delta in headline_deltas(inputs):
        row = inputs.summary_of(delta["comparison"], *subject_of(delta))
        parts = (delta["measurement"], None if row is None else row["statistic"])
        ordered.append(
            Headline(
                delta=delta_words(delta),
                sentence=sentence(delta, confidence(inputs), settled_by(inputs, [delta])),
                outcome=IN_RECORDINGS if in_few_recordings(delta) else outcome(delta),
                context="; ".join(str(part) for part in parts if not is_missing(part)),
                anchor=inputs.anchors.get((delta["comparison"], delta["measurement"]), "scores"),
            )
        )
    return tuple(ordered)


def first_headlines_of_each(ordered: tuple[Headline, ...]) -> tuple[tuple[Headline, ...], tuple[Headline, ...]]:
    """Split headlines into the first few of each page and the rest, for example of a sweep over many depths.

    Differences come first, so that they are not left out for a less informative headline.
    """
    by_page = grouped(sorted(ordered, key=lambda headline: headline.outcome not in SHOWN), lambda one: one.anchor)
    first = {headline for of_page in by_page.values() for headline in of_page[:_MOST_HEADLINES]}
    return (
        tuple(headline for headline in ordered if headline in first),
        tuple(headline for headline in ordered if headline not in first),
    )


def lead(inputs: Inputs) -> tuple[str, ...]:
    """Return the verdict in one sentence for each compared drive, models first."""
    deltas = headline_deltas(inputs)
    if not deltas:
        only = inputs.drives[0] if len(inputs.drives) == 1 else ""
        none = f"Only {only} was measured, so there is no comparison." if only else "There are no deltas to compare."
        return (none,)
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
    few = [delta for delta in deltas if in_few_recordings(delta)]
    if few and not any(outcome(delta) in DECIDED for delta in deltas):
        return _in_these_recordings(inputs, few, total)
    groups, every = grouped(deltas, _group), _every(total)
    busy = _busy([delta for delta in deltas if outcome(delta) in DECIDED])
    if groups.keys() == {SAME}:
        return f"{drive} and {basis} are equal within ±{margin(deltas[0])} in {every}{busy}."
    if groups.keys() == {NOT_COMPARED}:
        return f"{drive} and {basis} are not compared: they differ in something that the study forbids."
    if groups.keys() <= {_NOT_TESTED, NOT_COMPARED}:
        return f"No verdict on {drive} against {basis}: {why_not_tested(deltas)}{_range(deltas)}.{remedy(deltas)}"
    if groups.keys() == {CANNOT_TELL}:
        any_test = every if total == 1 else f"any of the {total} headline tests"
        return f"No verdict on {drive} against {basis} in {any_test}: {why_in_doubt(deltas)}.{remedy(deltas)}"
    parts = [(_graded(groups[name]), len(groups[name])) for name in ("better", "worse") if name in groups]
    rest = [f"{adjective} in {len(groups[name])}" for name, adjective in _UNDECIDED.items() if name in groups]
    if not parts:
        return f"{drive} against {basis} in {total} headline tests: {names(rest)}{busy}."
    return f"{drive} is {_in_tests(parts, basis, total, rest)}{busy}."


def _busy(decided: list[Row]) -> str:
    """Say how many of the tests with a verdict were measured on a busy machine, as a part of a sentence."""
    count = sum(map(disturbed, decided))
    return f"; {'' if count == len(decided) else f'{count} of these tests were '}{BUSY}" if count else ""


def _range(deltas: list[Row]) -> str:
    """Return the range of the deltas that there are, as ` (Δ -11 % to +96 %)`; empty if there is none."""
    values = sorted(float(row["delta_pct"]) for row in deltas if comparable(row))
    ends = dict.fromkeys(percent(value, signed=True) for value in (*values[:1], *values[-1:]))
    return f" (Δ {' to '.join(ends)})" if ends else ""


def _every(total: int) -> str:
    return "the only headline test" if total == 1 else f"all {total} headline tests"


def _in_tests(parts: list[tuple[str, int]], basis: str, total: int, rest: list[str]) -> str:
    (first, count), *others = parts
    tests = _every(total) if count == total else f"{count} of {total} headline tests"
    others_and_rest = [*(f"{grade} in {number}" for grade, number in others), *rest]
    return names([f"{first} than {basis} in {tests}", *others_and_rest])


def _in_these_recordings(inputs: Inputs, few: list[Row], total: int) -> str:
    """Return the differences of too few recordings, which are no verdict, and what would make one possible."""
    drive, basis = few[0]["comparison"], few[0]["basis"]
    sides = grouped(few, lambda row: "within" if within_margin(row) else "better" if row["delta_pct"] > 0 else "worse")
    parts = [(_graded(sides[side]), len(sides[side])) for side in ("better", "worse") if side in sides]
    rest = [f"within ±{margin(few[0])} in {len(sides['within'])}"] if "within" in sides else []
    rest += [f"undecided in {total - len(few)}"] if total > len(few) else []
    seen = f"is {_in_tests(parts, basis, total, rest)}" if parts else f"and {basis}, in {total} tests: {names(rest)}"
    more = settled_by(inputs, few) or f"{FEWEST} recordings of each drive"
    return f"In these recordings, {drive} {seen}. For a verdict: {more}."


_NOT_TESTED = "not tested"
_UNDECIDED = {SAME: "the same", CANNOT_TELL: "undecided", _NOT_TESTED: "not tested", NOT_COMPARED: "not compared"}


def _group(delta: Row) -> str:
    """Return what to count a verdict as; _NOT_TESTED instead of CANNOT_TELL if no test was possible."""
    verdict = outcome(delta)
    if verdict == CANNOT_TELL and not tested(delta):
        return _NOT_TESTED
    return direction(verdict) or verdict


def _graded(deltas: list[Row]) -> str:
    """Return the range of differences of the same direction, as `62 % faster`.

    Worse times keep the delta, as `slower (Δ -17 %)`: 17 % less speed is 21 % more time.
    """
    ordered = sorted((float(row["delta_pct"]) for row in deltas), key=abs)
    least, most = percent(abs(ordered[0])), percent(abs(ordered[-1]))
    better = ordered[-1] > 0
    adjective = comparative(deltas, better)
    if not better and any(map(is_time, deltas)):
        ends = dict.fromkeys(percent(value, signed=True) for value in (ordered[0], ordered[-1]))
        return f"{adjective} (Δ {' to '.join(ends)})"
    return f"{most if least == most else f'{least[:-2]}{DASH}{most}'} {adjective}"


def _comparisons(deltas: list[Row]) -> list[Row]:
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
    margins = " or ".join(dict.fromkeys(f"±{margin(row)}" for row in deltas))
    level = confidence(inputs)
    counted = (
        f"All {len(comparisons):,} comparisons: {tally}. IOPS, throughput and mean latency of a cell count as one "
        f"comparison, by the first of them; {len(deltas):,} values are compared."
    )
    if not family:
        doubted = any(map(tested, comparisons))
        cause = "each comparison has a doubt" if doubted else f"no comparison has {FEWEST} recordings on both sides"
        return f"{counted} No verdict uses a statistical test: {cause}."
    among = "the pair" if pairs == 1 else f"all {pairs} pairs"
    return (
        f"{counted} Faster or slower: the difference between the drives is significant after adjustment for the "
        f"{family:,} comparisons tested in {among} (Benjamini{DASH}Hochberg). Beyond the margin: its whole "
        f"interval{f' ({level}, adjusted)' if level else ''} lies beyond ±{margins.removeprefix('±')}. Same within the "
        f"margin: the whole interval lies within. Cannot tell: none of these, or a doubt applies."
        f"{_LOADED if any(map(disturbed, deltas)) else ''}{_growth(inputs)}"
    )


_LOADED = (
    f" Of what was {BUSY}, the interval includes the most that the load may have changed, and a difference has a "
    "verdict only if it lies beyond the margin."
)


def _growth(inputs: Inputs) -> str:
    """Say how a growing study chose its runs; empty for another."""
    growth = inputs.study.get("growth")
    if not growth:
        return ""
    looks = f" Looks that added runs: {' '.join(growth['reasons'])}" if growth["reasons"] else ""
    return (
        f" The study began with {growth['least']} runs and adds one at a time, up to {growth['most']}, until its "
        "headline tests are decided at the margin. The level of each look is stricter, so that all looks together "
        f"keep the confidence.{looks}"
    )


def subject_of(row: Row) -> tuple[str, str, str]:
    """Return what identifies a value of a drive: measurement, cell label, metric."""
    return row["measurement"], row["cell_label"], row["metric"]
