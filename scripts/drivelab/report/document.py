"""The content of the report as plain text; the template only lays it out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

from drivelab.analysis.verdict import DELTA_VERDICTS
from drivelab.report.view import SHOWN, Banner, Fact, FactGroup, Figure, Headline, Table, outcomes

QUESTIONS = ("Throughput", "Latency", "Tail latency", "Saturation", "Applications")
"""Questions of the comparison, in the order of the report."""
THROUGHPUT, LATENCY, TAILS, SATURATION, APPLICATIONS = QUESTIONS
MANY = 8
"""From so many drives on, the headline tests have a row for each drive, and pages of drives open on demand."""


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
        """Outcomes of the headlines that only the verdict table shows."""
        return outcomes(self.headlines_left_out)

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
