"""Provenance of each number: value, statistic, samples, interval, and the fio cells behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from drivelab.analysis.deltas.recordings import ROUNDING
from drivelab.report.delta import comparable
from drivelab.report.document import Proof, Report, Table
from drivelab.report.inputs import Inputs, Row
from drivelab.report.numbers import MISSING, heading, is_missing, number, percent, quantity, text, unit_of

Fact = tuple[str, str]


def _known(*facts: Fact) -> Iterator[Fact]:
    """Yield the facts with a value."""
    return ((name, value) for name, value in facts if not is_missing(value))


def between(row: Row, name: str, unit: str = "", suffix: str = "", to: str = " to ") -> str:
    """Return `low to high` of two columns; empty if one is missing."""
    low, high = (row.get(f"{name}_{end}{suffix}") for end in ("low", "high"))
    return "" if is_missing(low) or is_missing(high) else f"{number(low)}{to}{quantity(high, unit)}"


def value_proof(row: Row) -> Proof:
    """Return the provenance of a row of `summary`, or of a row with the same columns."""
    subject = (str(row[name]) for name in ("drive", "measurement", "cell_label") if not is_missing(row.get(name)))
    return Proof(
        title=f"{', '.join(subject)}: {heading(row['metric'], row.get('unit'))}",
        facts=_value_facts(row),
        recordings=tuple(map(str, row["recordings"])),
        evidence=tuple(dict.fromkeys(map(str, _listed(row.get("evidence"))))),
    )


def _value_facts(row: Row) -> tuple[Fact, ...]:
    unit, scope = unit_of(row["metric"], row.get("unit")), row.get("scope")
    return (
        ("Value", quantity(row["value"], unit)),
        ("Statistic", str(row["statistic"])),
        *_known(
            ("Count", count(row)),
            (
                f"Samples{'' if is_missing(scope) else f', {scope}'}",
                " · ".join(map(number, _listed(row.get("samples")))),
            ),
            ("Lowest to highest", between(row, "spread", unit)),
            ("95 % confidence interval", between(row, "interval", unit)),
            ("Fitted asymptote", asymptote(row) if row.get("asymptote_pct") else ""),
            ("Median absolute deviation", "" if is_missing(row.get("mad")) else quantity(deviation(row), unit)),
            ("Relative standard error", quantity(row.get("rse_pct"), "%")),
            ("Verdict", text(row.get("verdict"))),
            ("Tainted", text(row.get("taint_reason"))),
            ("Host limit", text(row.get("host_limit"))),
        ),
    )


def count(row: Row) -> str:
    """Return `n` of a value, and its samples if they are not its repeats; empty if neither is known."""
    samples, known = scatter(row), not is_missing(row.get("n"))
    return ", ".join(filter(None, (f"n = {number(row['n'])}" if known else "", samples and f"scatter of {samples}")))


def scatter(row: Row) -> str:
    """Return the samples that show the scatter, as `5 rounds`; empty if they are the n repeats."""
    samples = len(_listed(row.get("samples")))
    return "" if samples in (0, row.get("n")) else f"{samples} {row['scope']}"


def deviation(row: Row) -> float:
    """Return the median absolute deviation of a value; 0 if it is only a floating-point rounding error."""
    return 0.0 if row["mad"] < ROUNDING * abs(row["value"]) else float(row["mad"])


def asymptote(row: Row) -> str:
    """Return where the values of a window tend, relative to their average."""
    known = row.get("asymptote_pct")
    if is_missing(known):
        return MISSING
    return percent(known, signed=True) if known else "none: the rounds approach no other level"


def delta_proof(inputs: Inputs, delta: Row) -> Proof:
    """Return the provenance of a row of `deltas`: verdict and its tests, both values."""
    subject = (delta["measurement"], delta["cell_label"], delta["metric"])
    sides = {side: inputs.summary_of(str(delta[side]), *subject) for side in ("basis", "comparison")}
    parts = tuple(value_proof(row) for row in sides.values() if row is not None)
    return Proof(
        title=f"{delta['comparison']} against {delta['basis']}, {delta['measurement']}, {delta['cell_label']}: "
        f"{heading(delta['metric'], delta['unit'])}",
        facts=tuple(_delta_facts(delta, sides)),
        recordings=tuple(dict.fromkeys(name for part in parts for name in part.recordings)),
        parts=parts,
    )


def _delta_facts(row: Row, sides: Mapping[str, Row | None]) -> Iterator[Fact]:
    unit = unit_of(row["metric"], row["unit"])
    settled, load = row.get("asymptote_delta_pct"), row.get("disturbance_pct")
    yield "Delta", quantity(row["delta_pct"], "%") if comparable(row) else "none: the two values cannot be compared"
    yield from _known(
        ("Confidence interval", between(row, "interval", "%", "_pct")),
        ("Delta of the fitted asymptotes", "" if settled == row["delta_pct"] else quantity(settled, "%")),
        ("Load of others", "" if is_missing(load)
         else f"may have changed the ratio by {quantity(load, '%')}; the interval includes it"),
        ("Verdict", str(row["verdict"])),
        ("p of no difference", number(row.get("p_value"))),
        ("adjusted for all testable comparisons", number(row.get("p_adjusted"))),
        ("p of a difference beyond the margin", number(row.get("equivalence_p"))),
        ("adjusted for all testable comparisons", number(row.get("equivalence_p_adjusted"))),
        ("Margin", "" if is_missing(row.get("margin_pct")) else f"±{quantity(row['margin_pct'], '%')}"),
    )  # fmt: skip
    for side, value in sides.items():
        counts = count(value) if value else ""
        yield str(row[side]), f"{quantity(row[f'{side}_value'], unit)}{counts and f', {counts}'}"
    yield from _known(
        *((name.capitalize(), "; ".join(map(str, _listed(row.get(name))))) for name in ("doubts", "remarks"))
    )


def _listed(values: Any) -> list[Any]:
    """Return the list of a Parquet field, which may be an array or missing."""
    return [] if values is None or isinstance(values, float) else list(values)


def tables_of(report: Report) -> Iterator[Table]:
    """Yield every table of a report."""
    yield from filter(None, (report.glance, report.verdict_table, report.findings))
    for page in report.pages:
        yield from filter(None, (page.result, page.determination, page.findings))
        yield from page.tables
    yield from report.comparison_tables


def proofs_of(report: Report) -> dict[Proof, int]:
    """Number all proofs; the parts of a proof come before it."""
    cells = (cell for table in tables_of(report) for row in table.rows for cell in row)
    proofs = (proof for cell in cells if cell.proof for proof in (*cell.proof.parts, cell.proof))
    return {proof: number for number, proof in enumerate(dict.fromkeys(proofs))}


def fio_jobs(report: Report, recordings: Mapping[str, Path]) -> dict[str, str]:
    """Return the text of each number's first fio job, by its path.

    Replays and applications have no fio job. `recordings` gives the folder of each recording.
    """
    jobs: dict[str, str] = {}
    for place in dict.fromkeys(proof.evidence[0] for proof in proofs_of(report) if proof.evidence):
        drive, measurement, key, *rest = place.split("/")
        folder = recordings.get(f"{drive}/{measurement}/{key}")
        job = folder.joinpath(*rest, "job.fio") if folder else None
        if job is not None and job.is_file():
            jobs[place] = job.read_text(encoding="utf-8", errors="replace")
    return jobs
