"""The content of the report as plain text; the template only lays it out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from drivelab.analysis.verdict import BETTER, DELTA_VERDICTS, IN_RECORDINGS, WORSE, direction
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
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]


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
    headlines: tuple[Headline, ...] = ()
    headlines_left_out: tuple[Headline, ...] = ()
    """Headlines that only the verdict table shows."""
    verdict_terms: str = ""
    """Meaning of the verdicts in this study: margin, intervals, number of compared values."""
    verdict_table: Table | None = None
    findings: Table | None = None
    pages: tuple[Page, ...] = ()
    comparison_tables: tuple[Table, ...] = ()
    comparison_figures: tuple[Figure, ...] = ()
    trace_figures: tuple[Figure, ...] = ()
    rse_limit: str = ""
    score_formula: str = ""
    sources: tuple[str, ...] = ()
    downloads: tuple[Download, ...] = ()

    @property
    def has_many_drives(self) -> bool:
        return len({page.drive for page in self.pages}) >= MANY

    @property
    def leads(self) -> tuple[str, ...]:
        """The verdicts beside the sentence; none if the sentence says the only one."""
        return self.lead if len(self.lead) > 1 else ()

    @property
    def headlines_shown(self) -> tuple[Headline, ...]:
        """The headlines with a difference."""
        return tuple(headline for headline in self.headlines if headline.outcome in SHOWN)

    @property
    def headlines_folded(self) -> tuple[tuple[str, tuple[Headline, ...]], ...]:
        """The other headlines by outcome."""
        by_outcome = {
            name: tuple(headline for headline in self.headlines if headline.outcome == name)
            for name in DELTA_VERDICTS
            if name not in SHOWN
        }
        return tuple((name, headlines) for name, headlines in by_outcome.items() if headlines)

    @property
    def outcomes_left_out(self) -> str:
        """Outcomes of the headlines that only the verdict table shows: `3 slower (size unsure), 2 cannot tell`."""
        counts = Counter(headline.outcome for headline in self.headlines_left_out)
        return ", ".join(f"{counts[name]} {name}" for name in (*DELTA_VERDICTS, IN_RECORDINGS) if counts[name])

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Figures and tables of the comparison by question, then by measurement, in the order of the pages.

        Content about all measurements NAME.VALUE of a test is under NAME, before them.
        """
        every: tuple[Figure | Table, ...] = (*self.comparison_figures, *self.comparison_tables)
        named = {(part.question, part.group) for part in every if part.group}
        of_pages = ((page.measurement.partition(".")[0], page.measurement) for page in self.pages)
        measurements = dict.fromkeys((*chain.from_iterable(of_pages), *(part.group for part in every)))
        questions = (*QUESTIONS, *(question for question, _ in sorted(named) if question not in QUESTIONS))
        ordered = [(question, name) for question in questions for name in measurements if (question, name) in named]
        return tuple(
            Comparison(
                f"comparison-{place}",
                question,
                measurement,
                tuple(f for f in self.comparison_figures if (f.question, f.group) == (question, measurement)),
                tuple(t for t in self.comparison_tables if (t.question, t.group) == (question, measurement)),
            )
            for place, (question, measurement) in enumerate(dict.fromkeys(ordered), start=1)
        )
