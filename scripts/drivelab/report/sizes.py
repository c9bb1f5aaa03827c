"""Results by block size, as on the PTS throughput page, for tests that measure each size separately."""

from __future__ import annotations

from drivelab.report.inputs import Inputs, Row
from drivelab.report.number_cells import summary_cell
from drivelab.report.numbers import heading
from drivelab.report.taint import taint_mark, taint_reasons
from drivelab.report.view import Cell, Column, Table
from drivelab.units import format_size

_FEWEST = 2
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
    tables = (_table(inputs, name, measurements) for name, measurements in groups.items())
    return tuple(table for table in tables if table is not None)


def _table(inputs: Inputs, name: str, measurements: list[str]) -> Table | None:
    """Return the table of a group; None if the block sizes are equal or the tracked metrics differ."""
    metrics = {metric for measurement in measurements for _, metric in inputs.tracked(measurement)}
    cells = inputs.frame("cells")
    if len(metrics) != 1 or not all(map(inputs.tracked, measurements)) or cells.empty:
        return None
    loads = cells[(cells["kind"] == "loop") & cells["measurement"].isin(measurements)]
    loads = loads[["measurement", "block_size_bytes", "pattern", "read_share_pct", "workload"]].drop_duplicates()
    sizes = loads.groupby("measurement")["block_size_bytes"].agg(["nunique", "first"])
    if len(sizes) < _FEWEST or (sizes["nunique"] > 1).any() or sizes["first"].duplicated().any():
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
        fields = [summary_cell(row, taint_mark(row) if row else "") for row in values]
        rows.append((Cell(format_size(load.block_size_bytes)), Cell(mix), *fields))
    if not rows:
        return None
    tainted = [row for row in shown if taint_mark(row)]
    return Table(
        id=f"sizes-{inputs.measurements.index(measurements[0]) + 1}",
        caption=f"{name}: {heading(metric, shown[0]['unit'])}, by block size",
        columns=(
            Column("Block size", numeric=False),
            Column("R/W mix %", numeric=False),
            *map(Column, inputs.drives),
        ),
        rows=tuple(rows),
        note=f"Tainted: {taint_reasons(tainted)}." if tainted else "",
        sources=inputs.sources(name for row in shown for name in row["recordings"]),
        group=name,
    )
