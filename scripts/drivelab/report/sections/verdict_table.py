"""The headline tests as a table: deltas, then values."""

from __future__ import annotations

from drivelab.report.document import MANY
from drivelab.report.inputs import Inputs, Row
from drivelab.report.measurement_outcome import footnote
from drivelab.report.numbers import DASH
from drivelab.report.sentences import Reasons
from drivelab.report.table_fields import judged_cell, longest_of, metric_cell, side_cells
from drivelab.report.verdict import headline_deltas, subject_of
from drivelab.report.view import Cell, Column, Table

_Rows = tuple[tuple[Cell, ...], ...]


def verdict_table(inputs: Inputs) -> Table | None:
    """Return the headlines as a table: per workload the delta of each drive, then the values, basis first.

    Of many drives, each drive has a row for each workload.
    """
    deltas = headline_deltas(inputs)
    if not deltas:
        return None
    reasons = Reasons(inputs, deltas)
    many = len(inputs.drives) >= MANY
    columns, rows = (_of_each_drive if many else _of_each_workload)(inputs, deltas, reasons)
    subjects = set(map(subject_of, deltas))
    shown = [row for row in inputs.tables["summary"] if subject_of(row) in subjects]
    return Table(
        id="verdict-table",
        caption="Headline tests",
        columns=columns,
        rows=rows,
        note=" ".join(
            [
                "Δ is positive if the compared drive is better than the basis, for speeds and for times. Its "
                "confidence interval is below it.",
                footnote(deltas),
            ]
        ).strip(),
        reasons=reasons.notes,
        sources=inputs.sources(name for row in shown for name in row["recordings"]),
        filtered=many,
    )


def _of_each_workload(inputs: Inputs, deltas: list[Row], reasons: Reasons) -> tuple[tuple[Column, ...], _Rows]:
    others = list(dict.fromkeys(row["comparison"] for row in deltas))
    longest = longest_of(deltas)
    columns = (
        Column("Workload", numeric=False),
        *(Column(f"Δ {drive}") for drive in others),
        Column("Metric", numeric=False),
        Column(f"{deltas[0]['basis']} (basis)"),
        *map(Column, others),
    )
    by_subject: dict[tuple[str, str, str], dict[str, Row]] = {}
    for delta in deltas:
        by_subject.setdefault(subject_of(delta), {})[delta["comparison"]] = delta
    rows = []
    for (measurement, label, _metric), by_drive in by_subject.items():
        first = next(iter(by_drive.values()))
        compared = [by_drive.get(drive) for drive in others]
        sides = [side_cells(inputs, delta) if delta else None for delta in compared]
        rows.append(
            (
                Cell(label, small=measurement),
                *(judged_cell(inputs, delta, longest, reasons) if delta else Cell(DASH) for delta in compared),
                metric_cell(first),
                next(side for side in sides if side)[0],
                *(side[1] if side else Cell("not measured", tone="missing") for side in sides),
            )
        )
    return columns, tuple(rows)


def _of_each_drive(inputs: Inputs, deltas: list[Row], reasons: Reasons) -> tuple[tuple[Column, ...], _Rows]:
    longest = longest_of(deltas)
    columns = (
        Column("Drive", numeric=False), Column("Workload", numeric=False), Column("Δ"), Column("Metric", numeric=False),
        Column(f"{deltas[0]['basis']} (basis)"), Column("Value"),
    )  # fmt: skip
    return columns, tuple(
        (
            Cell(delta["comparison"], anchor=inputs.anchors.get((delta["comparison"], delta["measurement"]), "")),
            Cell(delta["cell_label"], small=delta["measurement"]),
            judged_cell(inputs, delta, longest, reasons),
            metric_cell(delta),
            *side_cells(inputs, delta),
        )
        for delta in deltas
    )
