"""The result of a detector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from drivelab.analysis.detectors.recording import Recording


@dataclass(frozen=True)
class Finding:
    """A row of table `findings` without the recording's key and the detector's name.

    `drivelab.tables.result_schemas` describes the columns.
    """

    found: bool
    words: str
    cell_label: str | None = None
    metric: str | None = None
    value: float | None = None
    threshold: float | None = None
    unit: str | None = None
    begin_s: float | None = None
    end_s: float | None = None


Detector = Callable[[Recording], Iterable[Finding]]
"""Returns the findings in one recording, or one finding that says "nothing found"; no finding without data."""


class Declared(NamedTuple):
    """A detector as its module declares it, as `DETECTOR`."""

    name: str
    """Name in table `findings` and in reports."""
    detect: Detector
    place: int = 100
    """Place in reports: disturbances are below 10, characteristics of drives above."""


def findings_or_nothing(findings: Iterable[Finding], nothing: Finding | None) -> Iterator[Finding]:
    """Yield the findings, or `nothing` if there are none.

    `nothing` is None if there was no data to check.
    """
    findings = list(findings)
    if findings:
        yield from findings
    elif nothing is not None:
        yield nothing
