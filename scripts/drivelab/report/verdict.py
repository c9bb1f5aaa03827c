"""Who is faster at what, by how much, how sure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from drivelab.analysis.multiple import one_of_each
from drivelab.analysis.verdict import BETTER, CANNOT_TELL, NOT_COMPARED, SAME, WORSE
from drivelab.report.inputs import Inputs, Row
from drivelab.report.no_verdict import remedy, why_in_doubt, why_not_tested
from drivelab.report.number_cells import judged_cell, longest_of, side_cell
from drivelab.report.numbers import DASH, heading, is_missing, percent, quantity
from drivelab.report.outcome import delta_words, footnote, is_time, margin, outcome, rests_on_one_recording, tested
from drivelab.report.reasons import Reasons
from drivelab.report.sentences import VERBS, WITHIN, sentence
from drivelab.report.view import Cell, Column, Headline, Table

_SPEED_FIRST = ("iops", "bandwidth_mib_s", "mean_latency_us", "duration_s")
_MOST_HEADLINES = 5
_TIME_FIRST = ("access_time_us", "duration_s", "bandwidth_mib_s", "mean_latency_us", "iops")
"""For a replay with the application's own timing: the trace dictates the IOPS, the drive only how long each takes."""


def headline_deltas(inputs: Inputs) -> list[Row]:
    """The deltas that matter: of tracked variables, or else of the one metric that says most about a cell."""
    replayed = {row["measurement"] for row in inputs.tables["replays"]}
    found: list[Row] = []
    for measurement in inputs.measurements:
        deltas = inputs.deltas_of(measurement)
        tracked = inputs.tracked(measurement)
        chosen = [row for one in tracked for row in deltas if (row["cell_label"], row["metric"]) == one]
        found += chosen or _most_telling(deltas, _TIME_FIRST if measurement in replayed else _SPEED_FIRST)
    return found


def _most_telling(deltas: list[Row], preferred: tuple[str, ...]) -> Iterator[Row]:
    labels = list(dict.fromkeys(row["cell_label"] for row in deltas))
    sets = [label for label in labels if label.startswith("set of ")]
    for label in sets or labels:  # a set stands for its traces
        of_cell = [row for row in deltas if row["cell_label"] == label]
        metrics = {row["metric"] for row in of_cell}
        best = next((metric for metric in preferred if metric in metrics), of_cell[0]["metric"])
        yield from (row for row in of_cell if row["metric"] == best)


def confidence(inputs: Inputs) -> str:
    """How sure the intervals of the deltas are, in words; empty where the study does not say."""
    level = inputs.study.get("confidence_pct")
    return "" if is_missing(level) else f"{quantity(level, '%')} confidence"


def headlines(inputs: Inputs) -> tuple[Headline, ...]:
    """A sentence for each delta that matters, in the order of the study."""
    found = []
    for delta in headline_deltas(inputs):
        row = inputs.summary_of(delta["comparison"], *_subject(delta))
        parts = (delta["measurement"], None if row is None else row["statistic"])
        found.append(
            Headline(
                delta=delta_words(delta),
                delta_pct=None if is_missing(delta["delta_pct"]) else float(delta["delta_pct"]),
                sentence=sentence(delta, confidence(inputs)),
                outcome=outcome(delta),
                context="; ".join(str(part) for part in parts if not is_missing(part)),
                anchor=inputs.anchors.get((delta["comparison"], delta["measurement"]), ""),
            )
        )
    return tuple(found)


def first_headlines_of_each(found: tuple[Headline, ...]) -> tuple[tuple[Headline, ...], tuple[Headline, ...]]:
    """The first few of each page they lead to, such as of a sweep over many depths, and the rest.

    What is better or worse comes before what is neither, so that none of them is left out for one that says less.
    """
    counts: Counter[str] = Counter()
    first = set()
    for place, one in sorted(enumerate(found), key=lambda numbered: numbered[1].outcome not in VERBS):
        counts[one.anchor] += 1
        if counts[one.anchor] <= _MOST_HEADLINES:
            first.add(place)
    return (
        tuple(one for place, one in enumerate(found) if place in first),
        tuple(one for place, one in enumerate(found) if place not in first),
    )


def lead(inputs: Inputs) -> tuple[str, ...]:
    """The verdict in one sentence for each drive that is compared."""
    deltas = headline_deltas(inputs)
    if not deltas:
        only = inputs.drives[0] if len(inputs.drives) == 1 else ""
        return (
            f"Only {only} was measured: there is nothing to compare."
            if only
            else "No deltas: nothing can be compared.",
        )
    return tuple(
        _lead(drive, [row for row in deltas if row["comparison"] == drive])
        for drive in dict.fromkeys(row["comparison"] for row in deltas)
    )


def _lead(drive: str, deltas: list[Row]) -> str:
    deltas = _comparisons(deltas)
    basis, total = deltas[0]["basis"], len(deltas)
    counts = Counter(map(_counted_as, deltas))
    scope = _of_scope(deltas)
    every = "the one headline comparison" if total == 1 else f"all {total} headline comparisons"
    if counts[BETTER] == total or counts[WORSE] == total:
        return f"{drive} {VERBS[outcome(deltas[0])]} {basis} in {every} {_by(deltas)}{scope}."
    if counts[SAME] == total:
        return f"{drive} and {basis} are the same within ±{margin(deltas[0])} in {every}{scope}."
    if counts[NOT_COMPARED] == total:
        return f"{drive} and {basis} are not compared: something differs between them that the study forbids."
    if counts[_NOT_TESTED] + counts[NOT_COMPARED] == total:
        return f"No verdict on {drive} against {basis}: {why_not_tested(deltas)}.{remedy(deltas)}"
    if counts[CANNOT_TELL] == total:
        if not any(len(row["doubts"]) for row in deltas):
            return f"{drive} and {basis} cannot be told apart in {every}."
        within = every if total == 1 else f"any of the {total} headline comparisons"
        return f"No verdict on {drive} against {basis} in {within}: {why_in_doubt(deltas)}.{remedy(deltas)}"
    sizes = {one: _by([row for row in deltas if outcome(row) == one]) for one in VERBS if counts[one]}
    rest = ", ".join(f"{counts[one]} {words}" for one, words in _OTHERWISE.items() if counts[one])
    if not sizes:
        return f"Of {total} headline comparisons of {drive} with {basis}{scope}: {rest}."
    if len(sizes) == 1:
        ((one, size),) = sizes.items()
        told = f"{drive} {VERBS[one]} {basis} in {counts[one]} of {total} headline comparisons {size}{scope}"
    else:
        parts = [f"{VERBS[one]} {basis} in {counts[one]} ({size})" for one, size in sizes.items()]
        told = f"{drive} {' and '.join(parts)} of {total} headline comparisons{scope}"
    return f"{told}; {rest}." if rest else f"{told}."


def _counted_as(delta: Row) -> str:
    """The verdict; of what cannot be told, apart from that, what nothing could be tested of."""
    said = outcome(delta)
    return _NOT_TESTED if said == CANNOT_TELL and not tested(delta) else said


def _by(deltas: list[Row]) -> str:
    """How large differences are, as `by 35 to 130 %`; said to be deltas where a time is among them, which shrinks by
    less than 100 %."""
    sizes = [abs(float(row["delta_pct"])) for row in deltas]
    least, most = percent(min(sizes)), percent(max(sizes))
    by = "by a Δ of " if any(map(is_time, deltas)) else "by "
    return f"{by}{most}" if least == most else f"{by}{least[:-2]} to {most}"


def _of_scope(deltas: list[Row]) -> str:
    """How many of the verdicts rest on one recording of each drive."""
    narrow = sum(map(rests_on_one_recording, deltas))
    decided = sum(outcome(row) in (BETTER, WORSE, SAME) for row in deltas)
    if narrow and narrow < decided:
        return f" ({narrow} of the {decided} verdicts within one recording)"
    return WITHIN if narrow else ""


def _comparisons(deltas: list[Row]) -> list[Row]:
    """One of those that count as one comparison: IOPS, else throughput, else mean latency."""
    values = ((row["measurement"], row["comparison"], row["cell_label"], row["metric"]) for row in deltas)
    return [deltas[place] for place in one_of_each(values)]


_NOT_TESTED = "not tested"
_NO_SCATTER = "of none of them the scatter is known on both sides"
_OTHERWISE = {
    SAME: "the same",
    CANNOT_TELL: "cannot be told",
    _NOT_TESTED: "could not be tested",
    NOT_COMPARED: "not compared",
}


def terms(inputs: Inputs) -> str:
    """What the words of the verdicts stand for in this study; empty where nothing is compared."""
    deltas = inputs.tables["deltas"]
    if not deltas:
        return ""
    found = _comparisons(deltas)
    counts = Counter(map(_counted_as, found))
    named = {BETTER: "better", WORSE: "worse", **_OTHERWISE}
    told = ", ".join(f"{counts[one]:,} {words}" for one, words in named.items() if counts[one])
    family = len(_comparisons([row for row in deltas if not is_missing(row.get("p_adjusted", row["delta_pct"]))]))
    pairs = len({(row["basis"], row["comparison"]) for row in deltas})
    margins = " or ".join(dict.fromkeys(f"±{margin(row)}" for row in deltas))
    level = confidence(inputs)
    counted = (
        f"Of all {len(found):,} comparisons: {told}. IOPS, throughput and mean latency of a cell are one comparison, "
        f"counted by the first of them; {len(deltas):,} values are compared."
    )
    if not family:
        cause = "something speaks against each of them" if any(map(tested, found)) else _NO_SCATTER
        return f"{counted} No verdict rests on a test: {cause}."
    among = "the pair" if pairs == 1 else f"all {pairs} pairs"
    return (
        f"{counted} Better or worse: the difference is significant after adjustment for the {family:,} comparisons "
        f"tested in {among} (Benjamini{DASH}Hochberg) and not wholly within the margin of {margins}. The same: its "
        f"interval{f' ({level})' if level else ''} lies wholly within the margin. "
        "Whatever is neither, or is in doubt, cannot be told."
    )


def verdict_table(inputs: Inputs) -> Table | None:
    """The headlines as a table: a row for each cell with the delta of each drive, then the values, the basis first."""
    deltas = headline_deltas(inputs)
    if not deltas:
        return None
    basis = deltas[0]["basis"]
    others = list(dict.fromkeys(row["comparison"] for row in deltas))
    longest = longest_of(deltas)
    reasons = Reasons(inputs, deltas)
    columns = [
        Column("Workload", numeric=False),
        *(Column(f"Δ {drive}") for drive in others),
        Column("Metric", numeric=False),
        Column(f"{basis} (basis)"),
        *map(Column, others),
    ]
    by_subject: dict[tuple[str, str, str], dict[str, Row]] = {}
    for delta in deltas:
        by_subject.setdefault(_subject(delta), {})[delta["comparison"]] = delta
    rows = []
    for (measurement, label, metric), by_drive in by_subject.items():
        first = next(iter(by_drive.values()))
        of_others = [by_drive.get(drive) for drive in others]
        rows.append(
            (
                Cell(label, small=measurement),
                *(judged_cell(inputs, one, longest, reasons) if one else Cell(DASH) for one in of_others),
                Cell(heading(metric, first["unit"])),
                side_cell(inputs, first, "basis"),
                *(
                    side_cell(inputs, one, "comparison") if one else Cell("not measured", tone="missing")
                    for one in of_others
                ),
            )
        )
    recordings = [name for row in inputs.tables["summary"] if _subject(row) in by_subject for name in row["recordings"]]
    return Table(
        id="verdict-table",
        caption="The headline comparisons",
        columns=tuple(columns),
        rows=tuple(rows),
        note=" ".join(
            [
                "Δ is positive where the compared drive is better than the basis, for speeds and for times alike; "
                "below it its confidence interval.",
                footnote(deltas),
            ]
        ).strip(),
        reasons=reasons.notes,
        sources=inputs.sources(recordings),
    )


def _subject(row: Row) -> tuple[str, str, str]:
    return row["measurement"], row["cell_label"], row["metric"]
