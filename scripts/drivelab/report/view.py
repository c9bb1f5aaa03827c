"""The elements of a report as plain text: tables, figures, facts, headlines, banners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from drivelab.analysis.verdict import BETTER, DELTA_VERDICTS, IN_RECORDINGS, WORSE, direction
from drivelab.report.numbers import DASH


@dataclass(frozen=True)
class Link:
    """A name with a link to a place in the report."""

    text: str
    anchor: str


@dataclass(frozen=True)
class Proof:
    """The provenance of a number."""

    title: str
    facts: tuple[tuple[str, str], ...]
    """Names and values; the values are formatted as elsewhere in the report."""
    recordings: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    """Recording and directory of each fio cell behind the number."""
    parts: tuple[Proof, ...] = ()
    """The two values of a difference."""


@dataclass(frozen=True)
class Cell:
    """One field of a table."""

    text: str
    small: str = ""
    """Second line, such as the spread of a value."""
    tone: str = ""
    """`good`, `bad`, `missing`, `mark` or nothing; the text must be clear without it."""
    bar: float | None = None
    """Length of a bar from the middle, -1 to 1; positive is better."""
    anchor: str = ""
    verdict: str = ""
    """The verdict on a delta, shown next to it."""
    value: float | None = None
    """The number in full precision, for sorting and downloads."""
    proof: Proof | None = None
    download: str = ""
    """Text of the field in a download; empty for `value` or `text`."""


@dataclass(frozen=True)
class Column:
    """Heading of a column, with the unit."""

    text: str
    numeric: bool = True
    download: str = ""
    """Heading in a download, if its values have another unit; empty for `text`."""


@dataclass(frozen=True)
class Table:
    """A table; the first field of each row is its heading."""

    id: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    reasons: tuple[str, ...] = ()
    """Reasons for uncertain verdicts; a field refers to them by number, as `[1]`."""
    sources: tuple[str, ...] = ()
    """Recordings behind the numbers, with their paths."""
    collapsed: bool = False
    filtered: bool = False
    """Whether a reader can filter the rows."""
    group: str = ""
    """In the comparison: the measurement; empty for tables of the whole study."""
    question: str = ""
    """In the comparison: the question that the table answers, one of QUESTIONS."""

    @property
    def parts(self) -> tuple[Table, ...]:
        """Split the table by row heading and remove empty columns."""
        headings = dict.fromkeys(row[0].text for row in self.rows)
        return tuple(
            replace(
                self,
                id=f"{self.id}-{place}",
                caption=heading,
                rows=tuple(row for row in self.rows if row[0].text == heading),
            ).without_empty_columns()
            for place, heading in enumerate(headings, start=1)
        )

    def without_empty_columns(self) -> Table:
        """Return the table without columns that are a dash in every row: they waste room on a narrow screen."""
        kept = [place for place in range(len(self.columns)) if any(row[place].text != DASH for row in self.rows)]
        return replace(
            self,
            columns=tuple(self.columns[place] for place in kept),
            rows=tuple(tuple(row[place] for place in kept) for row in self.rows),
        )


@dataclass(frozen=True)
class Fact:
    """A named value of a header block."""

    name: str
    value: str
    tone: str = ""


@dataclass(frozen=True)
class FactGroup:
    """One part of a header block."""

    title: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Figure:
    """A figure as a data URI."""

    title: str
    caption: str
    alt: str
    uri: str
    width: int
    height: int
    values: str = ""
    """Values of the figure's marks as JSON (`drivelab.figures.base.values`); empty if it carries none."""
    recording: str = ""
    """Recording or trace whose figures share one time axis; empty for figures over several."""
    group: str = ""
    """As in a table."""
    question: str = ""
    """As in a table."""


@dataclass(frozen=True)
class Headline:
    """One headline test as a sentence."""

    delta: str
    sentence: str
    outcome: str
    """One of drivelab.analysis.verdict.DELTA_VERDICTS, for the compared drive; or IN_RECORDINGS."""
    context: str
    """Test and statistic."""
    anchor: str

    @property
    def direction(self) -> str:
        """Return `better` or `worse`, or nothing without a verdict on the difference."""
        return direction(self.outcome)


SHOWN = (*BETTER, *WORSE, IN_RECORDINGS)
"""Outcomes of headlines with a difference."""


def outcomes(headlines: Iterable[Headline]) -> str:
    """Count headlines by outcome, as `3 faster beyond the margin, 2 same within the margin`."""
    counts = Counter(headline.outcome for headline in headlines)
    return ", ".join(f"{counts[name]} {name}" for name in (*DELTA_VERDICTS, IN_RECORDINGS) if counts[name])


@dataclass(frozen=True)
class Banner:
    """A limitation of the numbers."""

    id: str
    label: str
    """A few words for the chips next to headings."""
    title: str
    meaning: str
    affected: tuple[Link, ...] = ()
    reasons: tuple[str, ...] = ()
