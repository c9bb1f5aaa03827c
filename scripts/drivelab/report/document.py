"""The content of the report as plain text; the template only lays it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from drivelab.core.grouping import grouped
from drivelab.report.numbers import DASH

QUESTIONS = ("Throughput", "Latency", "Tail latency", "Saturation", "Applications")
"""Questions of the comparison, in the order of the report."""
THROUGHPUT, LATENCY, TAILS, SATURATION, APPLICATIONS = QUESTIONS
MANY = 8
"""From so many drives on, the headline tests have a row for each drive, and pages of drives open on demand."""


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
        by_heading = enumerate(grouped(self.rows, lambda row: row[0].text).items(), start=1)
        parts = (
            replace(self, id=f"{self.id}-{place}", caption=heading, rows=tuple(rows))
            for place, (heading, rows) in by_heading
        )
        return tuple(part.without_empty_columns() for part in parts)

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
class Banner:
    """A limitation of the numbers."""

    id: str
    label: str
    """A few words for the chips next to headings."""
    title: str
    meaning: str
    affected: Mapping[str, str]
    """Names of tests by the anchors of their pages."""
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """One test of one drive."""

    id: str
    drive: str
    measurement: str
    title: str
    labels: tuple[str, ...]
    head: tuple[Fact, ...]
    groups: Mapping[str, Sequence[Fact]]
    """Header block: facts by title."""
    altered: tuple[str, ...]
    notes: tuple[str, ...]
    result: Table | None
    """The main result, shown first; None if the tables of the cells are the result."""
    determination: Table | None
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    findings: Table | None = None
    """Findings of the detectors, and the checks that found nothing."""


@dataclass(frozen=True)
class Comparison:
    """What one measurement answers to one question of the comparison."""

    id: str
    question: str
    measurement: str
    figures: Sequence[Figure]
    tables: Sequence[Table]


@dataclass(frozen=True)
class Download:
    """A table of the study."""

    name: str
    meaning: str
    rows: int
    size_bytes: int
    """Size of its compressed data in all of its files."""
    parquet: bytes
    """The whole table as one file; empty if it has no rows or is too large for a report."""


@dataclass(frozen=True)
class Report:
    """The whole report."""

    title: str
    study: str
    report_date: str
    measured: str
    """Start of the first test, or a note that it is not recorded."""
    sentence: str
    """Who is faster, at what, by how much and how sure; empty if there is no value."""
    chart: Callable[[], Figure | None]
    """Draws the absolute values of the headline tests side by side; None without values. It takes half a second."""
    glance: Table | None
    """At most three headline tests; None without values."""
    lead: tuple[str, ...]
    """The verdict on each compared drive."""
    banners: tuple[Banner, ...]
    identities: tuple[Fact, ...] = ()
    """Model, capacity and firmware of each drive, or "not recorded"; the basis comes first."""
    verdict_terms: str = ""
    """Meaning of the verdicts in this study: margin, intervals, number of compared values."""
    verdict_table: Table | None = None
    findings: Table | None = None
    pages: tuple[Page, ...] = ()
    comparison_tables: tuple[Table, ...] = ()
    comparison_figures: tuple[Figure, ...] = ()
    trace_figures: tuple[Figure, ...] = ()
    rse_limit: str = ""
    sources: tuple[str, ...] = ()
    downloads: tuple[Download, ...] = ()

    @property
    def has_many_drives(self) -> bool:
        return len({page.drive for page in self.pages}) >= MANY

    @property
    def comparisons(self) -> list[Comparison]:
        """Figures and tables of the comparison by question, then by measurement, in the order of the pages.

        Content about all measurements NAME.VALUE of a test is under NAME, before them.
        """
        parts: tuple[Figure | Table, ...] = (*self.comparison_figures, *self.comparison_tables)
        by_place = grouped(
            (part for part in parts if part.group), lambda part: (QUESTIONS.index(part.question), part.group)
        )
        of_pages = (name for page in self.pages for name in (page.measurement.partition(".")[0], page.measurement))
        names = list(dict.fromkeys((*of_pages, *(name for _, name in by_place))))
        places = sorted(by_place, key=lambda place: (place[0], names.index(place[1])))
        return [
            Comparison(
                f"comparison-{number}",
                QUESTIONS[question],
                measurement,
                [part for part in by_place[question, measurement] if isinstance(part, Figure)],
                [part for part in by_place[question, measurement] if isinstance(part, Table)],
            )
            for number, (question, measurement) in enumerate(places, start=1)
        ]
