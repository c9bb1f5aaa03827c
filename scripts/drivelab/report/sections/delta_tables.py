"""Tables of deltas: the headline tests, and all deltas of a measurement, question by question."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from drivelab.analysis.deltas.doubts import numbered
from drivelab.analysis.deltas.inference import Value, compared, main_values
from drivelab.core.grouping import grouped
from drivelab.report.delta import TONES, comparable, delta_words, footnote, interval, outcome, whys, with_reasons
from drivelab.report.document import MANY, QUESTIONS, Cell, Table
from drivelab.report.headline import headline_tests, subject_of
from drivelab.report.inputs import Inputs, Row, of_drive, question_of
from drivelab.report.numbers import DASH, heading, metric_name, metric_order, quantities, text, unit_of
from drivelab.report.sections.proof import delta_proof, value_proof
from drivelab.report.sections.replays import score_formula
from drivelab.report.table import Field, cell, of_each, table, words

_MANY_ROWS = 30


def verdict_cell(delta: Row | None) -> Cell:
    """Return the verdict with the numbers of its `reasons`, a dash for none; a star marks remarks."""
    if delta is None:
        return Cell(DASH)
    verdict, star = outcome(delta), " *" if len(delta["remarks"]) else ""
    return Cell(f"{verdict}{star}{delta['reasons']}", tone=TONES.get(verdict, ""))


def delta_cell(inputs: Inputs, delta: Row | None, longest: float | None = None) -> Cell:
    """Return a delta with its sign, interval and bar; `longest` is the delta with a full bar, None for no bars."""
    if delta is None:
        return Cell(DASH)
    if not comparable(delta):
        return Cell(delta_words(delta), tone="missing", proof=delta_proof(inputs, delta))
    value, bar = float(delta["delta_pct"]), None
    if longest is not None:  # on a log scale: a delta of hundreds would hide all others
        bar = math.copysign(math.log1p(abs(value)) / math.log1p(longest), value) if longest else 0.0
    return Cell(delta_words(delta), interval(delta), TONES.get(outcome(delta), ""), bar, value=value,
                proof=delta_proof(inputs, delta))  # fmt: skip


def longest_of(deltas: Iterable[Row]) -> float:
    """Return the largest absolute delta in percent; its bar has full length."""
    return max((abs(float(row["delta_pct"])) for row in deltas if comparable(row)), default=0.0)


def _metric(delta: Row) -> Cell:
    """Return the name of a delta's metric; a download also has the unit of its values."""
    return Cell(metric_name(delta["metric"]), "lower is better" if delta["kind"] == "time" else "",
                download=heading(delta["metric"], delta["unit"]))  # fmt: skip


def _with_sides(inputs: Inputs, delta: Row) -> Row:
    """Return a delta with `sides`: basis and comparison in one unit, with their provenance and full values."""
    names = ("basis", "comparison")
    values, unit = [delta[f"{side}_value"] for side in names], unit_of(delta["metric"], delta["unit"])
    shown = quantities(values, "" if unit == metric_name(delta["metric"]) else unit)
    summary = [inputs.summary_of(str(delta[side]), *subject_of(delta)) for side in names]
    sides = [
        replace(cell(value, proof=None if row is None else value_proof(row)), text=words)
        for value, words, row in zip(values, shown, summary, strict=True)
    ]
    return {**delta, "sides": sides}


def verdict_table(inputs: Inputs) -> Table | None:
    """Return the headlines as a table: per workload the delta of each drive, then the values, basis first.

    Of many drives, each drive has a row for each workload. None without a delta.
    """
    deltas, reasons = with_reasons(inputs, headline_tests(inputs, "deltas"), remedies=True)
    if not deltas:
        return None
    rows = [_with_sides(inputs, delta) for delta in deltas]
    many = len(inputs.drives) >= MANY
    subjects = set(map(subject_of, deltas))
    return table(
        "verdict-table",
        "Headline tests",
        _of_drives(inputs, rows) if many else _of_workloads(inputs, rows),
        rows if many else grouped(rows, subject_of).values(),
        "Δ is positive if the compared drive is better than the basis, for speeds and for times. Its confidence "
        f"interval is below it. {footnote(deltas)}",
        reasons=reasons,
        sources=inputs.sources_of(row for row in inputs.tables["summary"] if subject_of(row) in subjects),
        filtered=many,
    )


def _of_drives(inputs: Inputs, rows: list[Row]) -> Iterator[Field]:
    """Yield the fields of a table with a row for each delta."""

    def drive(row: Row) -> Cell:
        return Cell(row["comparison"], anchor=inputs.anchors.get((row["comparison"], row["measurement"]), ""))

    yield words("Drive", drive)
    yield words("Workload", "cell_label", "measurement")
    yield Field("Δ", lambda row: replace(delta_cell(inputs, row), verdict=verdict_cell(row).text))
    yield words("Metric", _metric)
    yield Field(f"{rows[0]['basis']} (basis)", lambda row: row["sides"][0])
    yield Field("Value", lambda row: row["sides"][1])


def _of_workloads(inputs: Inputs, rows: list[Row]) -> Iterator[Field]:
    """Yield the fields of a table with a row for each workload, which holds its deltas."""
    drives = list(dict.fromkeys(row["comparison"] for row in rows))

    def judged(drive: str, deltas: list[Row]) -> Cell:
        delta = of_drive(deltas, drive, "comparison")
        return replace(delta_cell(inputs, delta), verdict=verdict_cell(delta).text if delta else "")

    def value(drive: str, deltas: list[Row]) -> Any:
        delta = of_drive(deltas, drive, "comparison")
        return delta["sides"][1] if delta else Cell("not measured", tone="missing")

    yield words("Workload", lambda deltas: Cell(deltas[0]["cell_label"], deltas[0]["measurement"]))
    yield from of_each(drives, judged, "Δ {}")
    yield words("Metric", lambda deltas: _metric(deltas[0]))
    yield Field(f"{rows[0]['basis']} (basis)", lambda deltas: deltas[0]["sides"][0])
    yield from of_each(drives, value)


def deltas_tables(inputs: Inputs, measurement: str) -> Iterator[Table]:
    """Yield the deltas of the drives, then those of the models, question by question.

    Metrics that say the same as the main one of their cell are in a folded table.
    """
    for name, models in (("deltas", False), ("model_deltas", True)):
        deltas = inputs.where(name, measurement=measurement)
        marks, _ = numbered(map(whys, deltas))
        values = [Value(row["comparison"], row["cell_label"], row["metric"], (outcome(row), of_row))
                  for row, of_row in zip(deltas, marks, strict=True)]  # fmt: skip
        drives, variables = {row["comparison"] for row in deltas}, inputs.tracked(measurement)
        shown = main_values(values, frozenset((drive, *variable) for drive in drives for variable in variables))
        questions = [question_of(inputs, measurement, row["metric"]) for row in deltas]
        main = grouped(sorted(shown), questions.__getitem__)
        for number, question in enumerate(sorted(main, key=QUESTIONS.index), start=1):
            rows = [deltas[place] for place in main[question]]
            suffix = f"-{number}" if number > 1 else ""
            yield replace(_deltas_table(inputs, measurement, rows, models, suffix), question=question)
            if twins := sorted(twin for place in main[question] for twin in shown[place]):
                rows = [deltas[place] for place in twins]
                yield replace(
                    _deltas_table(inputs, measurement, rows, models, f"-{number}-same"), question=question,
                    collapsed=True, caption=f"{measurement}: the same comparisons by other metrics of each cell",
                )  # fmt: skip


def _deltas_table(inputs: Inputs, measurement: str, deltas: list[Row], models: bool, suffix: str) -> Table:
    """Return a row for each value and compared drive or model, metric by metric."""
    longest, basis = longest_of(deltas), deltas[0]["basis"]
    others = list(dict.fromkeys(str(row["comparison"]) for row in deltas))
    places = {label: place for place, label in enumerate(dict.fromkeys(row["cell_label"] for row in deltas))}
    rows, reasons = with_reasons(inputs, sorted(deltas, key=lambda row: (
        metric_order(compared(row["cell_label"], row["metric"])), places[row["cell_label"]], row["comparison"],
        metric_order(row["metric"]))))  # fmt: skip
    several = len(others) > 1
    return table(
        f"{'model-' if models else ''}deltas-{inputs.measurements.index(measurement) + 1}{suffix}",
        f"{measurement}: {', '.join(others)} against {basis}, the basis{' (models)' if models else ''}",
        (
            Field("Cell", "cell_label", text, "comparison" if several else ""),
            Field("Δ", lambda row: delta_cell(inputs, row, longest)),
            words("Verdict", verdict_cell),
            words("Metric", _metric),
            Field(f"{basis} (basis)", lambda row: row["sides"][0]),
            Field(f"Compared {'model' if models else 'drive'}" if several else others[0], lambda row: row["sides"][1]),
        ),
        [_with_sides(inputs, row) for row in rows],
        " ".join(filter(None, ("Bars have a logarithmic scale.", footnote(rows), score_formula(deltas)))),
        reasons=reasons,
        sources=inputs.sources_of(inputs.where("summary", measurement=measurement)),
        collapsed=len(deltas) > _MANY_ROWS,
    )
