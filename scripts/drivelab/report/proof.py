"""What each number stands on: value, statistic, samples, interval, and the cells of fio behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from drivelab.analysis.delta_statistics import ROUNDING
from drivelab.report.inputs import Inputs, Row
from drivelab.report.numbers import heading, is_missing, number, quantity, unit_of
from drivelab.report.outcome import comparable
from drivelab.report.view import Proof

Fact = tuple[str, str]


def of_value(row: Row) -> Proof:
    """Of a row of the summary, or one like it."""
    return Proof(
        title=", ".join(_known(row, "drive", "measurement", "cell_label"))
        + f": {heading(row['metric'], row.get('unit'))}",
        facts=tuple(_facts_of_value(row)),
        recordings=tuple(map(str, row["recordings"])),
        evidence=tuple(dict.fromkeys(map(str, _listed(row.get("evidence"))))),
    )


def _facts_of_value(row: Row) -> Iterator[Fact]:
    unit = unit_of(row["metric"], row.get("unit"))
    yield "Value", quantity(row["value"], unit)
    yield "Statistic", str(row["statistic"])
    if told := count(row):
        yield "Count", told
    if samples := _listed(row.get("samples")):
        scope = row.get("scope")
        yield f"Samples{'' if is_missing(scope) else f', {scope}'}", " · ".join(number(one) for one in samples)
    if not is_missing(row.get("spread_low")) and not is_missing(row.get("spread_high")):
        yield "Lowest to highest", f"{number(row['spread_low'])} to {quantity(row['spread_high'], unit)}"
    if not is_missing(row.get("interval_low")) and not is_missing(row.get("interval_high")):
        yield "95 % bootstrap interval", f"{number(row['interval_low'])} to {quantity(row['interval_high'], unit)}"
    if not is_missing(row.get("mad")):
        yield "Median absolute deviation", quantity(deviation(row), unit)
    if not is_missing(row.get("rse_pct")):
        yield "Relative standard error", quantity(row["rse_pct"], "%")
    for name, column in (("Verdict", "verdict"), ("Tainted", "taint_reason")):
        if not is_missing(row.get(column)):
            yield name, str(row[column])


def count(row: Row) -> str:
    """`n` of a value, and the samples that its scatter is known by where these are no repeats; empty if neither is."""
    samples, known = scatter(row), not is_missing(row.get("n"))
    return ", ".join(part for part in (f"n = {number(row['n'])}" if known else "", samples and f"scatter of {samples}")
                     if part)  # fmt: skip


def scatter(row: Row) -> str:
    """`5 rounds`: what the scatter of a value is known by, where that is not its n repeats; empty else."""
    samples = len(_listed(row.get("samples")))
    return "" if samples in (0, row.get("n")) else f"{samples} {row['scope']}"


def deviation(row: Row) -> float:
    """The median absolute deviation of a value; none where it is what sums of floating-point numbers leave."""
    return 0.0 if row["mad"] < ROUNDING * abs(row["value"]) else float(row["mad"])


def of_window(row: Row, evidence: Iterable[str] = ()) -> Proof:
    """Of a tracked variable: a row of `steady_state`, and the cells in its window."""
    unit = unit_of(row["metric"], row["unit"])
    return Proof(
        title=f"{row['drive']}, {row['measurement']}, {row['variable']}: {heading(row['metric'], row['unit'])}",
        facts=(
            ("Steady state reached", "yes" if row["reached"] else "NO"),
            ("Window", f"rounds {row['window_start']} to {row['window_end']} of {row['rounds']}"),
            ("Values in the window", " · ".join(number(one) for one in row["values"])),
            ("Average", quantity(row["average"], unit)),
            ("Allowed maximum data excursion", quantity(row["allowed_data_excursion"], unit)),
            ("Measured maximum data excursion", quantity(row["measured_data_excursion"], unit)),
            ("Allowed maximum slope excursion", quantity(row["allowed_slope_excursion"], unit)),
            ("Measured maximum slope excursion", quantity(row["measured_slope_excursion"], unit)),
            ("Slope", quantity(row["slope"], f"{unit} a round")),
            ("Intercept", quantity(row["intercept"], unit)),
            ("Residual drift", quantity(row["residual_drift_pct"], "%")),
        ),
        recordings=(str(row["recording"]),),
        evidence=tuple(dict.fromkeys(map(str, evidence))),
    )


def of_delta(inputs: Inputs, delta: Row) -> Proof:
    """Of a row of `deltas`: its verdict with all that it was told by, what differs, and both values."""
    subject = (delta["measurement"], delta["cell_label"], delta["metric"])
    sides = {side: inputs.summary_of(str(delta[side]), *subject) for side in ("basis", "comparison")}
    parts = tuple(of_value(row) for row in sides.values() if row is not None)
    return Proof(
        title=f"{delta['comparison']} against {delta['basis']}, {delta['measurement']}, {delta['cell_label']}: "
        f"{heading(delta['metric'], delta['unit'])}",
        facts=(*_facts_of_delta(delta, sides), *_differences(inputs, delta)),
        recordings=tuple(dict.fromkeys(name for one in parts for name in one.recordings)),
        parts=parts,
    )


def _facts_of_delta(row: Row, sides: Mapping[str, Row | None]) -> Iterator[Fact]:
    unit = unit_of(row["metric"], row["unit"])
    yield "Delta", quantity(row["delta_pct"], "%") if comparable(row) else "none: the two cannot be compared"
    if not is_missing(row.get("interval_low_pct")) and not is_missing(row.get("interval_high_pct")):
        yield "Confidence interval", f"{number(row['interval_low_pct'])} to {quantity(row['interval_high_pct'], '%')}"
    yield "Verdict", str(row["verdict"])
    for name, column in (
        ("p of no difference", "p_value"),
        ("adjusted for all comparisons that can be called", "p_adjusted"),
        ("p of a difference beyond the margin", "equivalence_p"),
        ("adjusted for all comparisons that can be called", "equivalence_p_adjusted"),
    ):
        if not is_missing(row.get(column)):
            yield name, number(row[column])
    if not is_missing(row.get("margin_pct")):
        yield "Margin", f"±{quantity(row['margin_pct'], '%')}"
    for side, value in sides.items():
        told = count(value) if value else ""
        yield str(row[side]), f"{quantity(row[f'{side}_value'], unit)}{told and f', {told}'}"
    for name, column in (("Doubts", "doubts"), ("Remarks", "remarks")):
        if words := _listed(row.get(column)):
            yield name, "; ".join(map(str, words))


def _differences(inputs: Inputs, delta: Row) -> Iterator[Fact]:
    for row in inputs.differences_of(str(delta["measurement"]), str(delta["basis"]), str(delta["comparison"])):
        kind = "Meant to differ" if row["intended"] else "NOT meant to differ"
        yield f"{kind}: {row['facet']}", f"{row['basis_value']} → {row['comparison_value']}"


def _known(row: Row, *names: str) -> list[str]:
    return [str(row[name]) for name in names if not is_missing(row.get(name))]


def _listed(values: Any) -> list[Any]:
    """A list as Parquet gives it: an array, or nothing."""
    return [] if values is None or isinstance(values, float) else list(values)
