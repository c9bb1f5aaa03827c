"""Tables by capacity, as in Solidigm's guides: a row for each parameter, a column for each capacity."""

from __future__ import annotations

from drivelab.report.inputs import Inputs, Row
from drivelab.report.number_cells import delta_cell, longest_of, summary_cell
from drivelab.report.numbers import DASH, heading, is_missing, metric_order, size
from drivelab.report.outcome import footnote
from drivelab.report.view import Cell, Column, Table

_FEWEST = 2
_MANY_ROWS = 30


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
        collapsed=len(rows) > _MANY_ROWS,
        group=measurement,
    )  # fmt: skip
