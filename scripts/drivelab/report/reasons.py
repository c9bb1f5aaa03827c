"""Numbered reasons for uncertain verdicts, listed below a table."""

from __future__ import annotations

from collections.abc import Iterable

from drivelab.analysis.doubt_notes import numbered
from drivelab.report.inputs import Inputs, Row
from drivelab.report.outcome import also_differs, whys


class Reasons:
    """The reasons of a table; each field refers to them by number."""

    def __init__(self, inputs: Inputs, deltas: Iterable[Row]) -> None:
        rows = list(deltas)
        reasons = [[*whys(row), *filter(None, [also_differs(inputs, row)])] for row in rows]
        marks, notes = numbered(reasons)
        self.notes = tuple(notes)
        """Each reason once; the first is number 1."""
        self._marks = {_key(row): mark(of_row) for row, of_row in zip(rows, marks, strict=True)}

    def of(self, delta: Row) -> str:
        """Return the reason numbers of a delta, as ` [1, 2]`, or nothing."""
        return self._marks[_key(delta)]


def mark(numbers: tuple[int, ...]) -> str:
    """Return a reference to notes by number, as ` [1, 2]`, or nothing."""
    return f" [{', '.join(map(str, numbers))}]" if numbers else ""


def _key(delta: Row) -> tuple[str, ...]:
    return tuple(str(delta[name]) for name in ("measurement", "basis", "comparison", "cell_label", "metric"))
