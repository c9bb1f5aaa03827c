"""Results by block size where each size is a measurement of its own, as the throughput page of the PTS has them."""

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
    """For measurements NAME.VALUE that differ in their block size: a row for each size and R/W mix, a column per drive.

    The metric is the one that their loops track.
    """
    named: dict[str, list[str]] = {}
    for measurement in inputs.measurements:
        name, dot, _ = measurement.partition(".")
        if dot:
            named.setdefault(name, []).append(measurement)
    found = (_table(inputs, name, of_it) for name, of_it in named.items())
    return tuple(table for table in found if table is not None)


def _table(inputs: Inputs, name: str, measurements: list[str]) -> Table | None:
    """None where they do not differ in their block size, or track different metrics."""
    metrics = {metric for one in measurements for _, metric in inputs.tracked(one)}
    cells = inputs.frame("cells")
    if len(metrics) != 1 or not all(inputs.tracked(one) for one in measurements) or cells.empty:
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
    marked = [row for row in shown if taint_mark(row)]
    return Table(
        id=f"sizes-{inputs.measurements.index(measurements[0]) + 1}",
        caption=f"{name}: {heading(metric, shown[0]['unit'])}, by block size",
        columns=(
            Column("Block size", numeric=False),
            Column("R/W mix %", numeric=False),
            *map(Column, inputs.drives),
        ),
        rows=tuple(rows),
        note=f"Tainted: {taint_reasons(marked)}." if marked else "",
        sources=inputs.sources(name for row in shown for name in row["recordings"]),
        group=name,
    )
