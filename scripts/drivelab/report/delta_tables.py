"""Tables of all deltas of a measurement, and of the differences between the compared drives."""

from __future__ import annotations

from drivelab.analysis.verdict import BETTER, SAME, WORSE
from drivelab.report.inputs import Inputs, Row
from drivelab.report.number_cells import delta_cell, longest_of, side_cell, verdict_cell
from drivelab.report.numbers import heading, metric_order, text
from drivelab.report.outcome import footnote, outcome
from drivelab.report.reasons import Reasons
from drivelab.report.replay_result import score_formula
from drivelab.report.view import Cell, Column, Table

_MANY_ROWS = 30
_BARS = "Bars have a logarithmic scale."
_ADJECTIVES = {
    "time": {BETTER: "quicker", WORSE: "slower"},
    "speed": {BETTER: "faster", WORSE: "slower"},
}


def deltas_table(inputs: Inputs, measurement: str) -> Table | None:
    """Return a row for each value and compared drive, metric by metric; None without deltas."""
    deltas = inputs.deltas_of(measurement)
    if not deltas:
        return None
    longest = longest_of(deltas)
    others = list(dict.fromkeys(row["comparison"] for row in deltas))
    several = len(others) > 1
    basis = deltas[0]["basis"]
    places = {label: place for place, label in enumerate(dict.fromkeys(row["cell_label"] for row in deltas))}
    ordered = sorted(
        deltas, key=lambda row: (metric_order(row["metric"]), places[row["cell_label"]], row["comparison"])
    )
    reasons = Reasons(inputs, ordered)
    recordings = [
        name for row in inputs.tables["summary"] if row["measurement"] == measurement for name in row["recordings"]
    ]
    return Table(
        id=f"deltas-{inputs.measurements.index(measurement) + 1}",
        caption=f"{measurement}: {', '.join(others)} against {basis}, the basis",
        columns=(
            Column("Cell", numeric=False),
            Column("Δ"),
            Column("Verdict", numeric=False),
            Column("Metric", numeric=False),
            Column(f"{basis} (basis)"),
            Column("Compared drive" if several else str(deltas[0]["comparison"])),
            Column("Direction", numeric=False),
        ),
        rows=tuple(
            (
                Cell(str(row["cell_label"]), small=str(row["comparison"]) if several else ""),
                delta_cell(inputs, row, longest),
                verdict_cell(row, reasons),
                Cell(heading(row["metric"], row["unit"]), small="lower is better" if row["kind"] == "time" else ""),
                side_cell(inputs, row, "basis"),
                side_cell(inputs, row, "comparison"),
                Cell(_direction(row)),
            )
            for row in ordered
        ),
        note=" ".join(filter(None, (_BARS, footnote(ordered), score_formula(deltas)))),
        reasons=reasons.notes,
        sources=inputs.sources(recordings),
        collapsed=len(deltas) > _MANY_ROWS,
    )


def _direction(row: Row) -> str:
    """Return the direction of a certain difference, worded for its metric."""
    verdict = outcome(row)
    if verdict not in (BETTER, WORSE):
        return "none" if verdict == SAME else "undecided"
    adjectives = _ADJECTIVES.get(row["kind"], {BETTER: "better", WORSE: "worse"})
    return f"{row['comparison']} {adjectives[verdict]}"


def differences_table(inputs: Inputs) -> Table | None:
    """Return the differences of each compared pair, unintended ones first; None if not checked."""
    rows = inputs.tables["differences"]
    if not rows:
        return None
    groups: dict[tuple[str, ...], tuple[Row, list[str]]] = {}
    for row in rows:
        difference = (str(row["comparison"]), row["facet"], str(row["basis_value"]), str(row["comparison_value"]))
        groups.setdefault((*difference, str(row["intended"])), (row, []))[1].append(str(row["measurement"]))
    total = len({row["measurement"] for row in rows})
    ordered = sorted(groups.values(), key=lambda group: bool(group[0]["intended"]))
    return Table(
        id="ceteris-paribus",
        caption="Differences between the compared drives",
        columns=tuple(
            Column(name, numeric=False)
            for name in ("Difference", "Intended?", f"{rows[0]['basis']} (basis)", "Compared drive", "In")
        ),
        rows=tuple(
            (
                Cell(str(row["facet"]), small=str(row["comparison"])),
                Cell("yes") if row["intended"] else Cell("NO", tone="mark"),
                Cell(text(row["basis_value"])),
                Cell(text(row["comparison_value"])),
                Cell("every test" if len(set(tests)) == total else ", ".join(dict.fromkeys(tests))),
            )
            for row, tests in ordered
        ),
        note="An unintended difference may explain a delta. The verdicts list it too.",
        collapsed=len(ordered) > _MANY_ROWS,
    )
