"""Tables of all deltas of a measurement, and of the differences between the compared drives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from drivelab.analysis.deltas.differences import not_recorded_words, unknown
from drivelab.analysis.deltas.doubts import numbered
from drivelab.analysis.deltas.inference import compared
from drivelab.analysis.deltas.main_values import Value, main_values
from drivelab.core.units import format_size
from drivelab.criteria.inert import CANNOT_ACT, reason
from drivelab.report.document import QUESTIONS
from drivelab.report.inputs import Inputs, Row, question_of
from drivelab.report.measurement_outcome import footnote, marks, notes, outcome, whys
from drivelab.report.numbers import DASH, heading, is_missing, metric_order, size, text
from drivelab.report.sections.replay_result import score_formula
from drivelab.report.sentences import Reasons
from drivelab.report.table_fields import (
    delta_cell,
    longest_of,
    metric_cell,
    side_cells,
    summary_cell,
    verdict_cell,
)
from drivelab.report.view import Cell, Column, Table

_MANY_ROWS = 30
_BARS = "Bars have a logarithmic scale."


def deltas_tables(inputs: Inputs, measurement: str) -> Iterator[Table]:
    """Yield the deltas of the drives, then those of the models, question by question.

    Metrics that say the same as the main one of their cell are in a folded table.
    """
    of_models = [row for row in inputs.tables["model_deltas"] if row["measurement"] == measurement]
    for deltas, models in ((inputs.deltas_of(measurement), False), (of_models, True)):
        marks, _ = numbered(map(whys, deltas))
        values = [Value(row["comparison"], row["cell_label"], row["metric"], (outcome(row), of_row))
                  for row, of_row in zip(deltas, marks, strict=True)]  # fmt: skip
        tracked = frozenset(
            (row["comparison"], *variable) for row in deltas for variable in inputs.tracked(measurement)
        )
        others = {twin: main for main, twins in main_values(values, tracked).items() for twin in twins}
        main: dict[str, list[Row]] = {}
        same: dict[str, list[Row]] = {}
        for position, row in enumerate(deltas):
            shown = deltas[others.get(position, position)]
            of_one = same if position in others else main
            of_one.setdefault(question_of(inputs, measurement, shown["metric"]), []).append(row)
        for place, (question, rows) in enumerate(sorted(main.items(), key=lambda item: QUESTIONS.index(item[0]))):
            table = _deltas_table(inputs, measurement, rows, models, f"-{place + 1}" if place else "")
            yield replace(table, question=question)
            if question in same:
                table = _deltas_table(inputs, measurement, same[question], models, f"-{place + 1}-same")
                caption = f"{measurement}: the same comparisons by other metrics of each cell"
                yield replace(table, question=question, collapsed=True, caption=caption)


def _deltas_table(inputs: Inputs, measurement: str, deltas: list[Row], models: bool, suffix: str) -> Table:
    """Return a row for each value and compared drive or model, metric by metric."""
    longest = longest_of(deltas)
    others = list(dict.fromkeys(row["comparison"] for row in deltas))
    several = len(others) > 1
    basis = deltas[0]["basis"]
    places = {label: place for place, label in enumerate(dict.fromkeys(row["cell_label"] for row in deltas))}
    ordered = sorted(deltas, key=lambda row: (
        metric_order(compared(row["cell_label"], row["metric"])), places[row["cell_label"]], row["comparison"],
        metric_order(row["metric"])))  # fmt: skip
    reasons = Reasons(inputs, ordered)
    recordings = [
        name for row in inputs.tables["summary"] if row["measurement"] == measurement for name in row["recordings"]
    ]
    return Table(
        id=f"{'model-' if models else ''}deltas-{inputs.measurements.index(measurement) + 1}{suffix}",
        caption=f"{measurement}: {', '.join(others)} against {basis}, the basis{' (models)' if models else ''}",
        columns=(
            Column("Cell", numeric=False),
            Column("Δ"),
            Column("Verdict", numeric=False),
            Column("Metric", numeric=False),
            Column(f"{basis} (basis)"),
            Column(f"Compared {'model' if models else 'drive'}" if several else str(deltas[0]["comparison"])),
        ),
        rows=tuple(
            (
                Cell(str(row["cell_label"]), small=str(row["comparison"]) if several else ""),
                delta_cell(inputs, row, longest),
                verdict_cell(row, reasons),
                metric_cell(row),
                *side_cells(inputs, row),
            )
            for row in ordered
        ),
        note=" ".join(filter(None, (_BARS, footnote(ordered), score_formula(deltas)))),
        reasons=reasons.notes,
        sources=inputs.sources(recordings),
        collapsed=len(deltas) > _MANY_ROWS,
    )


def differences_tables(inputs: Inputs) -> tuple[Table, ...]:
    """Return the differences of the compared pairs, unintended ones first, and the conditions not recorded."""
    rows = inputs.tables["differences"]
    unrecorded = [row for row in rows if unknown(row["basis_value"], row["comparison_value"])]
    known = [row for row in rows if not unknown(row["basis_value"], row["comparison_value"])]
    tables = []
    if known:
        tables.append(
            Table(
                id="ceteris-paribus",
                caption="Differences between the compared drives",
                columns=_columns(rows, "Difference", "Intended?"),
                rows=tuple(_rows(known, len({row["measurement"] for row in rows}))),
                note="An unintended difference may explain a delta. The verdicts list it too.",
                collapsed=len(known) > _MANY_ROWS,
            )
        )
    if unrecorded:
        facets = {row["facet"] for row in unrecorded}
        tables.append(
            Table(
                id="conditions-not-recorded",
                caption=not_recorded_words(len(facets)),
                columns=_columns(rows, "Condition", "Meant to differ?"),
                rows=tuple(_rows(unrecorded, len({row["measurement"] for row in rows}))),
                note="Nobody knows whether these conditions are equal.",
                collapsed=True,
            )
        )
    return tuple(tables)


def _columns(rows: Sequence[Row], condition: str, intended: str) -> tuple[Column, ...]:
    names = (condition, intended, f"{rows[0]['basis']} (basis)", "Compared drive", "In")
    return tuple(Column(name, numeric=False) for name in names)


def _rows(differences: Sequence[Row], measurements: int) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each condition of a pair, unintended ones first; `measurements` counts those of the study."""
    groups: dict[tuple[str, ...], tuple[Row, list[str]]] = {}
    for row in differences:
        difference = (str(row["comparison"]), row["facet"], str(row["basis_value"]), str(row["comparison_value"]))
        key = (*difference, str(row["intended"]), str(row["kind"]))
        groups.setdefault(key, (row, []))[1].append(str(row["measurement"]))
    for row, tests in sorted(groups.values(), key=lambda group: bool(group[0]["intended"])):
        yield (
            Cell(str(row["facet"]), small=str(row["comparison"])),
            _intended(row),
            Cell(text(row["basis_value"])),
            Cell(text(row["comparison_value"])),
            Cell("every test" if len(set(tests)) == measurements else ", ".join(dict.fromkeys(tests))),
        )


def _intended(row: Row) -> Cell:
    if row["kind"] == CANNOT_ACT:
        return Cell(CANNOT_ACT, small=reason(str(row["facet"])))
    if row["intended"]:
        return Cell("yes")
    return Cell("no" if unknown(row["basis_value"], row["comparison_value"]) else "NO", tone="mark")


_FEWEST = 2
_MANY_CAPACITIES = 30


def capacity_tables(inputs: Inputs) -> tuple[Table, ...]:
    """Return a table for each measurement of drives with different capacities."""
    tables = (_table(inputs, measurement) for measurement in inputs.measurements)
    return tuple(table for table in tables if table is not None)


def _table(inputs: Inputs, measurement: str) -> Table | None:
    """Return the drives from smallest to largest, each with its delta to the basis."""
    capacities = {
        drive: inputs.drive(drive).get("capacity_bytes")
        for drive in inputs.drives
        if inputs.of_key("summary", (drive, measurement))
    }
    known = [
        capacity for capacity in capacities.values() if isinstance(capacity, int | float) and not is_missing(capacity)
    ]
    if len(known) < len(capacities) or len(set(known)) < _FEWEST:
        return None
    drives = sorted(capacities, key=lambda drive: (capacities[drive], inputs.drives.index(drive)))
    deltas = {(row["cell_label"], row["metric"], row["comparison"]): row for row in inputs.deltas_of(measurement)}
    compared = {drive for _, _, drive in deltas}
    longest = longest_of(deltas.values())
    parameters: dict[tuple[str, str], dict[str, Row]] = {}
    for drive in drives:
        for row in inputs.of_key("summary", (drive, measurement)):
            parameters.setdefault((row["cell_label"], row["metric"]), {}).setdefault(drive, row)
    ordered = sorted(parameters.items(), key=lambda item: metric_order(item[0][1]))
    columns = [Column("Parameter", numeric=False)]
    for drive in drives:
        columns.append(Column(f"{size(capacities[drive])} ({drive})"))
        columns += [Column(f"Δ {drive}")] if drive in compared else []
    rows = []
    for (label, metric), by_drive in ordered:
        cells = [Cell(label, small=heading(metric, next(iter(by_drive.values()))["unit"]))]
        for drive in drives:
            cells.append(summary_cell(by_drive.get(drive)))
            if drive in compared:
                delta = deltas.get((label, metric, drive))
                cells.append(Cell(DASH) if delta is None else delta_cell(inputs, delta, longest))
        rows.append(tuple(cells))
    recordings = (name for by_drive in parameters.values() for row in by_drive.values() for name in row["recordings"])
    return Table(
        id=f"capacities-{inputs.measurements.index(measurement) + 1}",
        caption=f"{measurement}: by capacity",
        columns=tuple(columns),
        rows=tuple(rows),
        note=" ".join(
            [f"Δ: against {inputs.study.get('basis')}, the basis; positive is better." if compared else "",
             footnote(deltas.values())]
        ).strip(),
        sources=inputs.sources(recordings),
        collapsed=len(rows) > _MANY_CAPACITIES,
        group=measurement,
    )  # fmt: skip


_FEWEST_SIZES = 2
_WORDS = {"random": "RND", "sequential": "SEQ"}


def size_tables(inputs: Inputs) -> tuple[Table, ...]:
    """Return a table for each group of measurements NAME.VALUE that differ in block size.

    A table has a row for each size and R/W mix and a column for each drive. The metric is the one that the loops track.
    """
    groups: dict[str, list[str]] = {}
    for measurement in inputs.measurements:
        name, dot, _ = measurement.partition(".")
        if dot:
            groups.setdefault(name, []).append(measurement)
    tables = (_size_table(inputs, name, measurements) for name, measurements in groups.items())
    return tuple(table for table in tables if table is not None)


def _size_table(inputs: Inputs, name: str, measurements: list[str]) -> Table | None:
    """Return the table of a group; None if the block sizes are equal or the tracked metrics differ."""
    metrics = {metric for measurement in measurements for _, metric in inputs.tracked(measurement)}
    cells = inputs.frame("cells")
    if len(metrics) != 1 or not all(map(inputs.tracked, measurements)) or cells.empty:
        return None
    loads = cells[(cells["kind"] == "loop") & cells["measurement"].isin(measurements)]
    loads = loads[["measurement", "block_size_bytes", "pattern", "read_share_pct", "workload"]].drop_duplicates()
    sizes = loads.groupby("measurement")["block_size_bytes"].agg(["nunique", "first"])
    if len(sizes) < _FEWEST_SIZES or (sizes["nunique"] > 1).any() or sizes["first"].duplicated().any():
        return None
    (metric,) = metrics
    shown: list[Row] = []
    rows = []
    for load in loads.sort_values(["block_size_bytes", "pattern", "read_share_pct"]).itertuples(index=False):
        values = [inputs.summary_of(drive, load.measurement, load.workload, metric) for drive in inputs.drives]
        if not any(values):
            continue
        shown += [row for row in values if row is not None]
        mix = f"{_WORDS.get(load.pattern, load.pattern)} {load.read_share_pct}/{100 - load.read_share_pct}"
        fields = [summary_cell(row, marks(row)) for row in values]
        rows.append((Cell(format_size(load.block_size_bytes)), Cell(mix), *fields))
    if not rows:
        return None
    return Table(
        id=f"sizes-{inputs.measurements.index(measurements[0]) + 1}",
        caption=f"{name}: {heading(metric, shown[0]['unit'])}, by block size",
        columns=(
            Column("Block size", numeric=False),
            Column("R/W mix %", numeric=False),
            *map(Column, inputs.drives),
        ),
        rows=tuple(rows),
        note=notes(shown),
        sources=inputs.sources(name for row in shown for name in row["recordings"]),
        group=name,
    )
