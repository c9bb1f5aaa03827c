"""What the report shows, as plain text in place: the template only lays it out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain

from drivelab.analysis.verdict import BETTER, CANNOT_TELL, NOT_COMPARED, SAME, WORSE
from drivelab.report.numbers import DASH


@dataclass(frozen=True)
class Link:
    """A name that leads to a place in the report."""

    text: str
    anchor: str


@dataclass(frozen=True)
class Proof:
    """What a number stands on, for whoever asks."""

    title: str
    facts: tuple[tuple[str, str], ...]
    """Name and value, the value as it is printed elsewhere."""
    recordings: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    """Recording and directory of each cell of fio that it stands on."""
    parts: tuple[Proof, ...] = ()
    """Of a difference: the numbers that it is the difference of."""


@dataclass(frozen=True)
class Cell:
    """One field of a table."""

    text: str
    small: str = ""
    """Second line, such as the spread of a value."""
    tone: str = ""
    """`good`, `bad`, `missing`, `mark` or nothing; never the only carrier of a meaning."""
    bar: float | None = None
    """Length of a bar from the middle, -1 to 1; positive is better."""
    anchor: str = ""
    href: str = ""
    """Another page that the text leads to, by its place relative to the report."""
    verdict: str = ""
    """What is said of a delta in a word, beside it."""
    value: float | None = None
    """The number behind the text in full precision: what is sorted by, and what goes into a download."""
    proof: Proof | None = None


@dataclass(frozen=True)
class Column:
    """Heading of a column, with the unit."""

    text: str
    numeric: bool = True


@dataclass(frozen=True)
class Table:
    """A table; the first field of each row is its heading."""

    id: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    reasons: tuple[str, ...] = ()
    """Why verdicts are no more than they are; a field names them by number, as `[1]`."""
    sources: tuple[str, ...] = ()
    """Recordings that the numbers come from, with their paths."""
    collapsed: bool = False
    group: str = ""
    """In the comparison: the measurement that it is of; empty where it is of the study."""

    @property
    def parts(self) -> tuple[Table, ...]:
        """A table for each heading that rows have in common, without the columns that say nothing there."""
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
        """The same without columns that are a dash in every row: on a narrow screen they take the room of the words."""
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
    chart: str = ""
    """The same figure for Plotly, as JSON; empty where there is none."""
    chart_height: int = 0
    """Of the chart, in pixels; 0 where it has the shape of the figure."""
    group: str = ""
    """As of a table."""


@dataclass(frozen=True)
class Headline:
    """One comparison that matters, as a sentence."""

    delta: str
    delta_pct: float | None
    """None where the two cannot be compared."""
    sentence: str
    outcome: str
    """One of drivelab.analysis.verdict.DELTA_VERDICTS, seen from the drive that is compared."""
    context: str
    """Test and statistic."""
    anchor: str


def outcomes(headlines: Iterable[Headline]) -> str:
    """How many come to what, as `3 better, 2 the same`."""
    counts = Counter(one.outcome for one in headlines)
    return ", ".join(f"{counts[one]} {words}" for one, words in _OUTCOMES.items() if counts[one])


_OUTCOMES = {
    BETTER: "better",
    WORSE: "worse",
    SAME: "the same",
    CANNOT_TELL: "cannot be told or tested",
    NOT_COMPARED: "not compared",
}


@dataclass(frozen=True)
class Banner:
    """Something that limits what the numbers say."""

    id: str
    label: str
    """One or two words, for the chips beside headings."""
    title: str
    meaning: str
    affected: tuple[Link, ...] = ()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Page:
    """One test of one drive."""

    id: str
    number: int
    drive: str
    measurement: str
    title: str
    labels: tuple[str, ...]
    head: tuple[Fact, ...]
    groups: tuple[FactGroup, ...]
    altered: tuple[str, ...]
    notes: tuple[str, ...]
    result: Table | None
    """What the test came to, before anything else; None where the tables of its cells are the result."""
    determination: Table | None
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    findings: Table | None = None
    """What the detectors found, and what they looked for and did not find."""


@dataclass(frozen=True)
class Comparison:
    """What compares the drives in one measurement."""

    id: str
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
    """Of its compressed data in all files that it lies in."""
    parquet: bytes
    """All of it as one file; empty where it has no rows, or is too large for a report."""


@dataclass(frozen=True)
class Report:
    """The whole report."""

    title: str
    study: str
    report_date: str
    measured: str
    """When the first test began, or that nobody wrote it down."""
    drives: str
    identities: tuple[Fact, ...]
    """Of the drives, the basis first: model, capacity, firmware, or that nobody recorded them."""
    lead: tuple[str, ...]
    labels: tuple[Link, ...]
    headlines: tuple[Headline, ...]
    headlines_left_out: tuple[Headline, ...]
    """Those that only the table of the verdict has."""
    verdict_terms: str
    """What the words of the verdict stand for in this study: margin, intervals, number of values compared."""
    verdict_table: Table | None
    findings: Table | None
    banners: tuple[Banner, ...]
    pages: tuple[Page, ...]
    comparison_tables: tuple[Table, ...]
    comparison_figures: tuple[Figure, ...]
    trace_figures: tuple[Figure, ...]
    rse_limit: str
    score_formula: str
    sources: tuple[str, ...]
    downloads: tuple[Download, ...] = ()

    @property
    def outcomes_left_out(self) -> str:
        """What the headlines come to that only the table of the verdict has."""
        return outcomes(self.headlines_left_out)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Figures and tables of the comparison by measurement, in the order of the pages.

        What is of all NAME.VALUE of a test for each value stands under NAME, before them.
        """
        groups = [*(one.group for one in self.comparison_figures), *(one.group for one in self.comparison_tables)]
        named = set(groups) - {""}
        of_pages = ((page.measurement.partition(".")[0], page.measurement) for page in self.pages)
        ordered = [*chain.from_iterable(of_pages), *groups]
        return tuple(
            Comparison(
                f"comparison-{place}",
                measurement,
                tuple(one for one in self.comparison_figures if one.group == measurement),
                tuple(one for one in self.comparison_tables if one.group == measurement),
            )
            for place, measurement in enumerate((one for one in dict.fromkeys(ordered) if one in named), start=1)
        )
