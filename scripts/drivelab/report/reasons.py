"""Why verdicts are no more than they are, below a table, each reason once with its number."""

from __future__ import annotations

from collections.abc import Iterable

from drivelab.analysis.doubt_notes import numbered
from drivelab.report.inputs import Inputs, Row
from drivelab.report.outcome import also_differs, whys


class Reasons:
    """The reasons of a table; a field names those of its delta by number."""

    def __init__(self, inputs: Inputs, deltas: Iterable[Row]) -> None:
        rows = list(deltas)
        told = [[*whys(row), *filter(None, [also_differs(inputs, row)])] for row in rows]
        marks, notes = numbered(told)
        self.notes = tuple(notes)
        """Each once, the first being number 1."""
        self._marks = {_key(row): mark(of_row) for row, of_row in zip(rows, marks, strict=True)}

    def of(self, delta: Row) -> str:
        """What stands behind the verdict on a delta: ` [1, 2]`, or nothing."""
        return self._marks[_key(delta)]


def mark(numbers: tuple[int, ...]) -> str:
    """What leads from a field to its notes: ` [1, 2]`, or nothing."""
    return f" [{', '.join(map(str, numbers))}]" if numbers else ""


def _key(delta: Row) -> tuple[str, ...]:
    return tuple(str(delta[name]) for name in ("measurement", "basis", "comparison", "cell_label", "metric"))
