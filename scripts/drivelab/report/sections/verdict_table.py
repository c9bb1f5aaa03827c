"""The headline tests as a table: deltas, then values."""

from __future__ import annotations

from drivelab.report.inputs import Inputs, Row
from drivelab.report.measurement_outcome import footnote
from drivelab.report.numbers import DASH
from drivelab.report.sentences import Reasons
from drivelab.report.table_fields import judged_cell, longest_of, metric_cell, side_cells
from drivelab.report.verdict import headline_deltas, subject_of
from drivelab.report.view import Cell, Column, Table


def verdict_table(inputs: Inputs) -> Table | None:
    """Return the headlines as a table: per cell the delta of each drive, then the values, basis first."""
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
    shown = [row for row in inputs.tables["summary"] if subject_of(row) in by_subject]
    return Table(
        id="verdict-table",
        caption="Headline tests",
        columns=tuple(columns),
        rows=tuple(rows),
        note=" ".join(
            [
                "Δ is positive if the compared drive is better than the basis, for speeds and for times. Its "
                "confidence interval is below it.",
                footnote(deltas),
            ]
        ).strip(),
        reasons=reasons.notes,
        sources=inputs.sources(name for row in shown for name in row["recordings"]),
    )
