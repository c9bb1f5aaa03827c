"""What the numbers of a report stand on: all proofs that its tables hold, and the fio jobs that these name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from drivelab.report.view import Proof, Report, Table

_PARTS_OF_RECORDING = 3
"""Of a path: drive, measurement and key."""


def tables_of(report: Report) -> Iterator[Table]:
    """Every table of a report."""
    yield from (one for one in (report.verdict_table, report.findings) if one)
    for page in report.pages:
        yield from (one for one in (page.result, page.determination, page.findings) if one)
        yield from page.tables
    yield from report.comparison_tables


def proofs_of(report: Report) -> dict[Proof, int]:
    """Every proof with its number; the parts of a proof come before it."""
    found: dict[Proof, int] = {}
    for table in tables_of(report):
        for row in table.rows:
            for cell in row:
                if cell.proof is not None:
                    for one in (*cell.proof.parts, cell.proof):
                        found.setdefault(one, len(found))
    return found


def fio_jobs(report: Report, recordings: Mapping[str, Path]) -> dict[str, str]:
    """Text of the first fio job that each number stands on, by its place; of replays and applications there is none."""
    found: dict[str, str] = {}
    for place in dict.fromkeys(proof.evidence[0] for proof in proofs_of(report) if proof.evidence):
        parts = place.split("/")
        folder = recordings.get("/".join(parts[:_PARTS_OF_RECORDING]))
        job = folder.joinpath(*parts[_PARTS_OF_RECORDING:], "job.fio") if folder else None
        if job is not None and job.is_file():
            found[place] = job.read_text(encoding="utf-8", errors="replace")
    return found
