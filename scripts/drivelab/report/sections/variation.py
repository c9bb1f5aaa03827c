"""What makes the values of a test vary, as a table."""

from __future__ import annotations

from drivelab.analysis.deltas.variation import HOSTS, RECORDINGS, ROUNDS, SOURCES, SPECIMENS
from drivelab.report.inputs import Inputs
from drivelab.report.numbers import heading, number, percent
from drivelab.report.table_fields import number_cell, percent_cell
from drivelab.report.view import Cell, Column, Table

_COUNTED = {ROUNDS: "rounds", RECORDINGS: "recordings", SPECIMENS: "drives", HOSTS: "platforms"}
"""What `n` counts, by source."""


def variation_table(inputs: Inputs, measurement: str) -> Table | None:
    """Return the standard deviations of a test by source; None without any."""
    rows = [row for row in inputs.tables["variation"] if row["measurement"] == measurement]
    if not rows:
        return None
    return Table(
        id=f"variation-{inputs.measurements.index(measurement) + 1}",
        caption=f"{measurement}: what makes the values vary",
        columns=(
            Column("", numeric=False),
            Column("Source", numeric=False),
            Column("Standard deviation"),
            Column("95 % interval"),
            Column("Cells"),
            Column("From"),
        ),
        rows=tuple(
            (
                Cell(str(row["subject"]), small=heading(row["metric"], None)),
                Cell(SOURCES[row["source"]]),
                percent_cell(row["sd_pct"]),
                Cell(f"{percent(row['low_pct'])} to {percent(row['high_pct'])}"),
                number_cell(row["cells"]),
                Cell(f"{number(row['n'])} {_COUNTED[row['source']]}"),
            )
            for row in rows
        ),
        note="Of one value, each beyond what the sources before explain; rounds that correlate look more alike than "
        "they are. More recordings reduce only what recordings cause; a claim about a model rests on specimens.",
        collapsed=True,
    )
