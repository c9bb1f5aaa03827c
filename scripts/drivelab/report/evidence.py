"""The evidence behind a report: the proofs in its tables, and the fio jobs that they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from drivelab.report.view import Proof, Report, Table

_PARTS_OF_RECORDING = 3
"""Parts of a path that name the recording: drive, measurement and key."""


def tables_of(report: Report) -> Iterator[Table]:
    """Yield every table of a report."""
    yield from filter(None, (report.verdict_table, report.findings))
    for page in report.pages:
        yield from filter(None, (page.result, page.determination, page.findings))
        yield from page.tables
    yield from report.comparison_tables


def proofs_of(report: Report) -> dict[Proof, int]:
    """Number all proofs; the parts of a proof come before it."""
    numbers: dict[Proof, int] = {}
    for table in tables_of(report):
        for row in table.rows:
            for cell in row:
                if cell.proof is not None:
                    for proof in (*cell.proof.parts, cell.proof):
                        numbers.setdefault(proof, len(numbers))
    return numbers


def fio_jobs(report: Report, recordings: Mapping[str, Path]) -> dict[str, str]:
    """Return the text of each number's first fio job, by its path.

    Replays and applications have no fio job. `recordings` gives the folder of each recording.
    """
    jobs: dict[str, str] = {}
    for place in dict.fromkeys(proof.evidence[0] for proof in proofs_of(report) if proof.evidence):
        parts = place.split("/")
        folder = recordings.get("/".join(parts[:_PARTS_OF_RECORDING]))
        job = folder.joinpath(*parts[_PARTS_OF_RECORDING:], "job.fio") if folder else None
        if job is not None and job.is_file():
            jobs[place] = job.read_text(encoding="utf-8", errors="replace")
    return jobs
