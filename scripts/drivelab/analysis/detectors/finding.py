"""What a detector says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from drivelab.analysis.detectors.recording import Recording


@dataclass(frozen=True)
class Finding:
    """A row of table `findings`, but for the key of its recording and the detector's name; the columns are told of in
    `drivelab.tables.result_schemas`."""

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
"""Findings in one recording, or one that says that there is nothing; none where there is nothing to look at."""


def told_or_nothing(found: Iterable[Finding], nothing: Finding | None) -> Iterator[Finding]:
    """What was found, or else the finding that there is nothing; that is None where nothing could be looked at."""
    found = list(found)
    if found:
        yield from found
    elif nothing is not None:
        yield nothing
