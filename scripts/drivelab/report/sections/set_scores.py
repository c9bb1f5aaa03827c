"""Scores over several measurements, each relative to the basis."""

from __future__ import annotations

from drivelab.report.inputs import Inputs
from drivelab.report.numbers import DASH, is_missing, names, number
from drivelab.report.sentences import Reasons
from drivelab.report.table_fields import summary_cell, verdict_cell
from drivelab.report.view import Cell, Column, Table
from drivelab.tables.labels import SCORE, score_label


def set_scores_table(inputs: Inputs) -> Table | None:
    """Return the scores of all drives, with the missing results of a drive without one; None for a study without."""
    sets = inputs.study.get("scores") or {}
    if not sets:
        return None
    deltas = {
        (row["measurement"], row["comparison"]): row for row in inputs.tables["deltas"] if row["protocol"] == SCORE
    }
    reasons = Reasons(inputs, list(deltas.values()))
    basis = inputs.study.get("basis")

    def cell(name: str, drive: str) -> Cell:
        row = inputs.summary_of(drive, name, score_label(len(sets[name])), "score")
        if row is None:
            return Cell(DASH, small=_missing(inputs, name, drive), tone="missing")
        low, high = row["interval_low"], row["interval_high"]
        interval = "" if is_missing(low) else f"{number(low)} to {number(high)}"
        return summary_cell(row, interval)

    def verdict(name: str, drive: str) -> Cell:
        delta = deltas.get((name, drive))
        return Cell(DASH) if delta is None else verdict_cell(delta, reasons)

    others = [drive for drive in inputs.drives if drive != basis]
    return Table(
        id="scores",
        caption=f"Scores, {basis} = 100",
        columns=(
            Column("Score", numeric=False),
            Column("Of", numeric=False),
            *(Column(drive) for drive in inputs.drives),
            *(Column(f"{drive} against {basis}", numeric=False) for drive in others),
        ),
        rows=tuple(
            (
                Cell(name),
                Cell(names(list(members))),
                *(cell(name, drive) for drive in inputs.drives),
                *(verdict(name, drive) for drive in others),
            )
            for name, members in sets.items()
        ),
        note="A score is the geometric mean of its members relative to the basis; more is better. A drive that lacks "
        "a member has no score. Below a score: its interval over the recordings, from three on.",
        reasons=reasons.notes,
    )


def _missing(inputs: Inputs, name: str, drive: str) -> str:
    """Return which members of a score a drive lacks."""
    has = {row["measurement"] for row in inputs.tables["summary"] if row["drive"] == drive}
    has |= {measurement.partition(".")[0] for measurement in has}
    lacking = [member for member in inputs.study["scores"][name] if member not in has]
    return f"no {names(lacking)}" if lacking else "no run has all members"
