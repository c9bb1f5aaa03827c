"""Provenance of each number: value, statistic, samples, interval, and the fio cells behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from drivelab.analysis.deltas.differences import not_recorded_words, unknown
from drivelab.analysis.deltas.recordings import ROUNDING
from drivelab.criteria.inert import CANNOT_ACT
from drivelab.report.document import Report
from drivelab.report.inputs import Inputs, Row
from drivelab.report.measurement_outcome import comparable
from drivelab.report.numbers import MISSING, heading, is_missing, number, percent, quantity, unit_of
from drivelab.report.view import Proof, Table

Fact = tuple[str, str]


def value_proof(row: Row) -> Proof:
    """Return the provenance of a row of `summary`, or of a row with the same columns."""
    return Proof(
        title=", ".join(_known(row, "drive", "measurement", "cell_label"))
        + f": {heading(row['metric'], row.get('unit'))}",
        facts=tuple(_value_facts(row)),
        recordings=tuple(map(str, row["recordings"])),
        evidence=tuple(dict.fromkeys(map(str, _listed(row.get("evidence"))))),
    )


def _value_facts(row: Row) -> Iterator[Fact]:
    unit = unit_of(row["metric"], row.get("unit"))
    yield "Value", quantity(row["value"], unit)
    yield "Statistic", str(row["statistic"])
    if counts := count(row):
        yield "Count", counts
    if samples := _listed(row.get("samples")):
        scope = row.get("scope")
        yield f"Samples{'' if is_missing(scope) else f', {scope}'}", " · ".join(map(number, samples))
    if not is_missing(row.get("spread_low")) and not is_missing(row.get("spread_high")):
        yield "Lowest to highest", f"{number(row['spread_low'])} to {quantity(row['spread_high'], unit)}"
    if not is_missing(row.get("interval_low")) and not is_missing(row.get("interval_high")):
        yield "95 % confidence interval", f"{number(row['interval_low'])} to {quantity(row['interval_high'], unit)}"
    if row.get("asymptote_pct"):
        yield "Fitted asymptote", asymptote(row)
    if not is_missing(row.get("mad")):
        yield "Median absolute deviation", quantity(deviation(row), unit)
    if not is_missing(row.get("rse_pct")):
        yield "Relative standard error", quantity(row["rse_pct"], "%")
    for name, column in (("Verdict", "verdict"), ("Tainted", "taint_reason"), ("Host limit", "host_limit")):
        if not is_missing(row.get(column)):
            yield name, str(row[column])


def count(row: Row) -> str:
    """Return `n` of a value, and its samples if they are not its repeats; empty if neither is known."""
    samples, known = scatter(row), not is_missing(row.get("n"))
    return ", ".join(part for part in (f"n = {number(row['n'])}" if known else "", samples and f"scatter of {samples}")
                     if part)  # fmt: skip


def scatter(row: Row) -> str:
    """Return the samples that show the scatter, as `5 rounds`; empty if they are the n repeats."""
    samples = len(_listed(row.get("samples")))
    return "" if samples in (0, row.get("n")) else f"{samples} {row['scope']}"


def deviation(row: Row) -> float:
    """Return the median absolute deviation of a value; 0 if it is only a floating-point rounding error."""
    return 0.0 if row["mad"] < ROUNDING * abs(row["value"]) else float(row["mad"])


def window_proof(row: Row, evidence: Iterable[str] = ()) -> Proof:
    """Return the provenance of a tracked variable.

    `row` is a row of `steady_state`, `evidence` the directories of the cells in its window.
    """
    unit = unit_of(row["metric"], row["unit"])
    return Proof(
        title=f"{row['drive']}, {row['measurement']}, {row['variable']}: {heading(row['metric'], row['unit'])}",
        facts=(
            ("Steady state reached", "yes" if row["reached"] else "NO"),
            ("Window", f"rounds {row['window_start']} to {row['window_end']} of {row['rounds']}"),
            ("Values in the window", " · ".join(map(number, row["values"]))),
            ("Average", quantity(row["average"], unit)),
            ("Allowed maximum data excursion", quantity(row["allowed_data_excursion"], unit)),
            ("Measured maximum data excursion", quantity(row["measured_data_excursion"], unit)),
            ("Allowed maximum slope excursion", quantity(row["allowed_slope_excursion"], unit)),
            ("Measured maximum slope excursion", quantity(row["measured_slope_excursion"], unit)),
            ("Slope", quantity(row["slope"], f"{unit} per round")),
            ("Intercept", quantity(row["intercept"], unit)),
            ("Residual drift", quantity(row["residual_drift_pct"], "%")),
            ("Fitted asymptote", asymptote(row)),
            ("Change points", level_change(row)),
        ),
        recordings=(str(row["recording"]),),
        evidence=tuple(dict.fromkeys(map(str, evidence))),
    )


def asymptote(row: Row) -> str:
    """Return where the values of a window tend, relative to their average."""
    if is_missing(row.get("asymptote_pct")):
        return MISSING
    return (
        percent(row["asymptote_pct"], signed=True)
        if row["asymptote_pct"]
        else "none: the rounds approach no other level"
    )


def level_change(row: Row) -> str:
    """Return the second opinion on a window, from change points."""
    if is_missing(row.get("asymptote_pct")):
        return MISSING
    if is_missing(row.get("change_round")):
        return "none in the window"
    return f"{percent(row['change_pct'], signed=True)} at round {int(row['change_round'])}"


def delta_proof(inputs: Inputs, delta: Row) -> Proof:
    """Return the provenance of a row of `deltas`: verdict and its tests, differences, both values."""
    subject = (delta["measurement"], delta["cell_label"], delta["metric"])
    sides = {side: inputs.summary_of(str(delta[side]), *subject) for side in ("basis", "comparison")}
    parts = tuple(value_proof(row) for row in sides.values() if row is not None)
    return Proof(
        title=f"{delta['comparison']} against {delta['basis']}, {delta['measurement']}, {delta['cell_label']}: "
        f"{heading(delta['metric'], delta['unit'])}",
        facts=(*_delta_facts(delta, sides), *_differences(inputs, delta)),
        recordings=tuple(dict.fromkeys(name for part in parts for name in part.recordings)),
        parts=parts,
    )


def _delta_facts(row: Row, sides: Mapping[str, Row | None]) -> Iterator[Fact]:
    unit = unit_of(row["metric"], row["unit"])
    yield "Delta", quantity(row["delta_pct"], "%") if comparable(row) else "none: the two values cannot be compared"
    if not is_missing(row.get("interval_low_pct")) and not is_missing(row.get("interval_high_pct")):
        yield "Confidence interval", f"{number(row['interval_low_pct'])} to {quantity(row['interval_high_pct'], '%')}"
    if not is_missing(settled := row.get("asymptote_delta_pct")) and settled != row["delta_pct"]:
        yield "Delta of the fitted asymptotes", quantity(settled, "%")
    if not is_missing(disturbance := row.get("disturbance_pct")):
        yield "Load of others", f"may have changed the ratio by {quantity(disturbance, '%')}; the interval includes it"
    yield "Verdict", str(row["verdict"])
    for name, column in (
        ("p of no difference", "p_value"),
        ("adjusted for all testable comparisons", "p_adjusted"),
        ("p of a difference beyond the margin", "equivalence_p"),
        ("adjusted for all testable comparisons", "equivalence_p_adjusted"),
    ):
        if not is_missing(row.get(column)):
            yield name, number(row[column])
    if not is_missing(row.get("margin_pct")):
        yield "Margin", f"±{quantity(row['margin_pct'], '%')}"
    for side, value in sides.items():
        counts = count(value) if value else ""
        yield str(row[side]), f"{quantity(row[f'{side}_value'], unit)}{counts and f', {counts}'}"
    for name, column in (("Doubts", "doubts"), ("Remarks", "remarks")):
        if sentences := _listed(row.get(column)):
            yield name, "; ".join(map(str, sentences))


def _differences(inputs: Inputs, delta: Row) -> Iterator[Fact]:
    unrecorded = 0
    for row in inputs.differences_of(str(delta["measurement"]), str(delta["basis"]), str(delta["comparison"])):
        if unknown(row["basis_value"], row["comparison_value"]):
            unrecorded += 1
        else:
            yield f"{_kind(row)}: {row['facet']}", f"{row['basis_value']} → {row['comparison_value']}"
    if unrecorded:
        yield "May differ", not_recorded_words(unrecorded)


def _kind(row: Row) -> str:
    if row["kind"] == CANNOT_ACT:
        return "Difference that cannot act"
    return "Intended difference" if row["intended"] else "UNINTENDED difference"


def _known(row: Row, *names: str) -> list[str]:
    return [str(row[name]) for name in names if not is_missing(row.get(name))]


def _listed(values: Any) -> list[Any]:
    """Return the list of a Parquet field, which may be an array or missing."""
    return [] if values is None or isinstance(values, float) else list(values)


_PARTS_OF_RECORDING = 3
"""Parts of a path that name the recording: drive, measurement and key."""


def tables_of(report: Report) -> Iterator[Table]:
    """Yield every table of a report."""
    yield from filter(None, (report.glance, report.verdict_table, report.findings))
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
