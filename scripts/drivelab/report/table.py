"""Declare tables: fields with a heading, the column of their values and their format, and the rows they show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from drivelab.report.document import Cell, Column, Proof, Table
from drivelab.report.inputs import Inputs, Key, Row
from drivelab.report.numbers import MISSING, is_missing, number, percent, text

Show = Callable[[Any], str]
Value = str | Callable[[Any], Any]
"""The name of a column, or a function of the row."""


signed = partial(percent, signed=True)
"""Format of a percentage with its sign."""


def cell(
    value: Any, show: Show = number, small: str = "", tone: str = "", proof: Proof | None = None, missing: str = MISSING
) -> Cell:
    """Return a value as a cell of a table; a number keeps its full precision."""
    if is_missing(value):
        return Cell(missing, small, tone or ("missing" if missing == MISSING else ""), proof=proof)
    return Cell(show(value), small, tone, value=None if show is text else float(value), proof=proof)


def scaled(cell: Cell, divisor: float) -> Cell:
    """Return a number in a larger unit; its exact value stays."""
    return cell if divisor == 1 or cell.value is None else replace(cell, text=number(cell.value / divisor))


@dataclass(frozen=True)
class Field:
    """A column of a table."""

    heading: str
    value: Value
    """Gives the value of a row, or its whole cell."""
    show: Show = number
    small: Value = ""
    """Gives the second line of the cell."""
    tone: Callable[[Any], str] | None = None
    missing: str = MISSING
    """Shown instead of a missing value."""
    download: str = ""
    """Heading in a download, if its values have another unit."""

    @property
    def column(self) -> Column:
        """Return the heading."""
        return Column(self.heading, self.show is not text, self.download)

    def cell(self, row: Any) -> Cell:
        """Return the cell of a row."""
        value = _value(row, self.value)
        if isinstance(value, Cell):
            return value
        small = str(_value(row, self.small)) if self.small else ""
        return cell(value, self.show, small, self.tone(row) if self.tone else "", missing=self.missing)


def _value(row: Any, value: Value) -> Any:
    return row[value] if isinstance(value, str) else value(row)


def words(heading: str, value: Value, small: Value = "", tone: Callable[[Any], str] | None = None) -> Field:
    """Return a field of texts."""
    return Field(heading, value, text, small, tone)


def fields(show: Show = number, missing: str = MISSING, **headings: str) -> Iterator[Field]:
    """Yield a field of this format for each column, given as COLUMN=HEADING."""
    return (Field(heading, column, show, missing=missing) for column, heading in headings.items())


def of_each(
    names: Iterable[Any], cell: Callable[[Any, Any], Any], heading: str = "{}", show: Show = number, download: str = ""
) -> Iterator[Field]:
    """Yield a field for each name: `cell` gives its value or cell from the name and the row."""
    for name in names:
        yield Field(heading.format(name), partial(cell, name), show, download=download.format(name))


def table(id_: str, caption: str, columns: Iterable[Field], rows: Iterable[Any], note: str = "", **more: Any) -> Table:
    """Return a table; `more` are further attributes of it."""
    columns = tuple(columns)
    lines = tuple(tuple(field.cell(row) for field in columns) for row in rows)
    return Table(id_, caption, tuple(field.column for field in columns), lines, note.strip(), **more)


Rows = Sequence[Row]


@dataclass(frozen=True)
class PageTable:
    """A table of the page of a test, declared."""

    id: str
    """End of its anchor."""
    caption: str | Callable[[Rows], str]
    rows: Callable[[Inputs, Key], Rows]
    """Selects the rows; without any, there is no table."""
    fields: Sequence[Field] | Callable[[Rows], Iterable[Field]]
    note: str | Callable[[Rows], str] = ""
    collapsed_above: int | None = None
    """Most rows of a table that starts unfolded."""
    sourced: bool = True
    """Whether the recordings behind the numbers are listed."""
    dense: bool = False
    """Whether columns without a value are left out."""

    def __call__(self, inputs: Inputs, key: Key) -> Iterator[Table]:
        """Yield the table of a test, if it has rows."""
        rows = self.rows(inputs, key)
        if rows:
            caption, note = (of(rows) if callable(of) else of for of in (self.caption, self.note))
            fields = self.fields(rows) if callable(self.fields) else self.fields
            whole = table(
                f"{inputs.anchors[key]}-{self.id}", caption, fields, rows, note,
                sources=inputs.sources_of(rows) if self.sourced else (),
                collapsed=self.collapsed_above is not None and len(rows) > self.collapsed_above,
            )  # fmt: skip
            yield whole.without_empty_columns() if self.dense else whole


def every(name: str, **wanted: Any) -> Callable[[Inputs, Key], Rows]:
    """Return a selection of the rows of a table with these values."""
    return lambda inputs, key: inputs.where(name, drive=key[0], measurement=key[1], **wanted)


def told_apart(rows: Rows, column: str, phrase: str = "{}") -> Rows:
    """Return rows with `of`: their value of a column as a phrase, if they differ in it; else nothing."""
    several = len({row[column] for row in rows}) > 1
    return [{**row, "of": phrase.format(row[column]) if several else ""} for row in rows]
