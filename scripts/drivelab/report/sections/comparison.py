"""The comparison of the drives: scores, deltas, values by capacity and block size, variation, other differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from drivelab.analysis.deltas.variation import HOSTS, RECORDINGS, ROUNDS, SOURCES, SPECIMENS
from drivelab.core.grouping import grouped
from drivelab.core.units import format_size
from drivelab.report.delta import footnote
from drivelab.report.document import Cell, Table
from drivelab.report.inputs import Inputs, Row, main_question
from drivelab.report.marks import marks, notes
from drivelab.report.numbers import (
    DASH,
    TIMES,
    capital,
    heading,
    is_missing,
    metric_order,
    names,
    number,
    percent,
    size,
    text,
)
from drivelab.report.sections.conditions import conditions_tables, differences_tables
from drivelab.report.sections.delta_tables import delta_cell, deltas_tables, longest_of, verdict_cell
from drivelab.report.sections.replays import basis_scores, relative_score, score_formula
from drivelab.report.sections.values import summary_cell
from drivelab.report.sentences import with_reasons
from drivelab.report.table import Field, fields, of_each, percentages, table, words
from drivelab.tables.labels import SCORE, score_label

_FEWEST = 2
"""Capacities or block sizes that a table needs."""
_MANY_CAPACITIES = 30
_PATTERNS = {"random": "RND", "sequential": "SEQ"}
_COUNTED = {ROUNDS: "rounds", RECORDINGS: "recordings", SPECIMENS: "drives", HOSTS: "platforms"}
"""What `n` counts, by source of variation."""


def comparison_tables(inputs: Inputs) -> tuple[Table, ...]:
    """Return deltas by measurement, values by capacity and block size, other differences, and traces."""
    compared = [
        replace(one, group=name)
        for name in inputs.measurements
        for tables in (scores(inputs, name), deltas_tables(inputs, name), variation_table(inputs, name))
        for one in tables
    ]
    compared += [*capacity_tables(inputs), *size_tables(inputs)]
    asked = [one if one.question else replace(one, question=main_question(inputs, one.group)) for one in compared]
    return (*set_scores(inputs), *differences_tables(inputs), *asked, *conditions_tables(inputs))


def _of_drive(rows: Iterable[Row], drive: str) -> Row | None:
    return next((row for row in rows if row["drive"] == drive), None)


def scores(inputs: Inputs, measurement: str) -> Iterator[Table]:
    """Yield the scores of all drives, also as multiples of the basis; nothing for a test without scores."""
    rows = inputs.where("summary", measurement=measurement, metric="score")
    if not rows:
        return
    basis = basis_scores(inputs, measurement)

    def score(drive: str, of_label: list[Row]) -> Cell:
        row = _of_drive(of_label, drive)
        known = row is not None and row["cell_label"] in basis
        return summary_cell(row, f"{relative_score(row, basis).text} {TIMES}" if known else "")

    multiples = f" Below: multiple of the score of {inputs.study.get('basis')}, the basis." if basis else ""
    yield table(
        f"scores-{inputs.measurements.index(measurement) + 1}",
        f"{measurement}: scores",
        (words("", lambda of_label: capital(str(of_label[0]["cell_label"]))), *of_each(inputs.drives, score)),
        grouped(rows, lambda row: row["cell_label"]).values(),
        f"{score_formula(rows)}{multiples}",
        sources=inputs.sources_of(rows),
    )


def set_scores(inputs: Inputs) -> Iterator[Table]:
    """Yield the scores of all drives over several measurements, with the missing results of a drive without one."""
    sets = inputs.study.get("scores") or {}
    if not sets:
        return
    deltas, reasons = with_reasons(inputs, inputs.where("deltas", protocol=SCORE))
    by_place = {(row["measurement"], row["comparison"]): row for row in deltas}
    basis = inputs.study.get("basis")

    def score(drive: str, name: str) -> Cell:
        row = inputs.summary_of(drive, name, score_label(len(sets[name])), "score")
        if row is None:
            return Cell(DASH, _lacking(inputs, name, drive), "missing")
        low, high = row["interval_low"], row["interval_high"]
        return summary_cell(row, "" if is_missing(low) else f"{number(low)} to {number(high)}")

    def verdict(drive: str, name: str) -> Cell:
        delta = by_place.get((name, drive))
        return Cell(DASH) if delta is None else verdict_cell(delta)

    yield table(
        "scores",
        f"Scores, {basis} = 100",
        (
            words("Score", str),
            words("Of", lambda name: names(list(sets[name]))),
            *of_each(inputs.drives, score),
            *of_each((drive for drive in inputs.drives if drive != basis), verdict, f"{{}} against {basis}", text),
        ),
        sets,
        "A score is the geometric mean of its members relative to the basis; more is better. A drive that lacks "
        "a member has no score. Below a score: its interval over the recordings, from three on.",
        reasons=reasons,
    )


def _lacking(inputs: Inputs, name: str, drive: str) -> str:
    """Return which members of a score a drive lacks."""
    has = {row["measurement"] for row in inputs.tables["summary"] if row["drive"] == drive}
    has |= {measurement.partition(".")[0] for measurement in has}
    lacking = [member for member in inputs.study["scores"][name] if member not in has]
    return f"no {names(lacking)}" if lacking else "no run has all members"


def capacity_tables(inputs: Inputs) -> Iterator[Table]:
    """Yield a table for each measurement of drives with different capacities, from smallest to largest.

    Each drive has its delta to the basis.
    """
    for measurement in inputs.measurements:
        measured = [drive for drive in inputs.drives if inputs.of_key("summary", (drive, measurement))]
        capacities: dict[str, Any] = {drive: inputs.drive(drive).get("capacity_bytes") for drive in measured}
        known = {value for value in capacities.values() if isinstance(value, int | float) and not is_missing(value)}
        if len(known) < _FEWEST or not known >= set(capacities.values()):
            continue
        drives = sorted(capacities, key=lambda drive: capacities[drive])
        rows = [row for drive in drives for row in inputs.of_key("summary", (drive, measurement))]
        deltas = {
            (row["cell_label"], row["metric"], row["comparison"]): row
            for row in inputs.where("deltas", measurement=measurement)
        }
        by_parameter = grouped(rows, lambda row: (row["cell_label"], row["metric"]))
        ordered = sorted(by_parameter.values(), key=lambda of_one: metric_order(of_one[0]["metric"]))
        compared = f"Δ: against {inputs.study.get('basis')}, the basis; positive is better. " if deltas else ""
        yield table(
            f"capacities-{inputs.measurements.index(measurement) + 1}",
            f"{measurement}: by capacity",
            (
                words("Parameter", lambda of_one: Cell(of_one[0]["cell_label"],
                                                       heading(of_one[0]["metric"], of_one[0]["unit"]))),
                *(field for drive in drives for field in _of_capacity(inputs, drive, capacities[drive], deltas)),
            ),
            ordered,
            f"{compared}{footnote(deltas.values())}",
            sources=inputs.sources_of(row for of_one in by_parameter.values() for row in of_one),
            collapsed=len(ordered) > _MANY_CAPACITIES,
            group=measurement,
        )  # fmt: skip


def _of_capacity(
    inputs: Inputs, drive: str, capacity_bytes: float, deltas: dict[tuple[str, str, str], Row]
) -> Iterator[Field]:
    """Yield the fields of a drive: its values, and its deltas if it has any."""
    longest = longest_of(deltas.values())

    def delta(of_one: list[Row]) -> Cell:
        found = deltas.get((of_one[0]["cell_label"], of_one[0]["metric"], drive))
        return Cell(DASH) if found is None else delta_cell(inputs, found, longest)

    yield Field(f"{size(capacity_bytes)} ({drive})", lambda of_one: summary_cell(_of_drive(of_one, drive)))
    if any(compared == drive for _, _, compared in deltas):
        yield Field(f"Δ {drive}", delta)


def size_tables(inputs: Inputs) -> Iterator[Table]:
    """Yield a table for each group of measurements NAME.VALUE that differ in block size.

    A table has a row for each size and R/W mix and a column for each drive. The metric is the one that the loops track.
    """
    groups = grouped((name for name in inputs.measurements if "." in name), lambda name: name.partition(".")[0])
    for name, measurements in groups.items():
        metrics = {metric for measurement in measurements for _, metric in inputs.tracked(measurement)}
        cells = inputs.frame("cells")
        if len(metrics) != 1 or not all(map(inputs.tracked, measurements)) or cells.empty:
            continue
        loads = cells[(cells["kind"] == "loop") & cells["measurement"].isin(measurements)]
        loads = loads[["measurement", "block_size_bytes", "pattern", "read_share_pct", "workload"]].drop_duplicates()
        sizes = loads.groupby("measurement")["block_size_bytes"].agg(["nunique", "first"])
        if len(sizes) < _FEWEST or (sizes["nunique"] > 1).any() or sizes["first"].duplicated().any():
            continue
        (metric,) = metrics
        rows: list[Row] = []
        for load in loads.sort_values(["block_size_bytes", "pattern", "read_share_pct"]).itertuples(index=False):
            values = {d: inputs.summary_of(d, load.measurement, load.workload, metric) for d in inputs.drives}
            mix = f"{_PATTERNS.get(load.pattern, load.pattern)} {load.read_share_pct}/{100 - load.read_share_pct}"
            if any(values.values()):
                rows.append({"size": format_size(load.block_size_bytes), "mix": mix, "values": values})
        shown = [value for row in rows for value in row["values"].values() if value is not None]
        if shown:
            yield table(
                f"sizes-{inputs.measurements.index(measurements[0]) + 1}",
                f"{name}: {heading(metric, shown[0]['unit'])}, by block size",
                (
                    words("Block size", "size"), words("R/W mix %", "mix"),
                    *of_each(inputs.drives, lambda drive, row: summary_cell(row["values"][drive],
                                                                            marks(row["values"][drive]))),
                ),
                rows,
                notes(shown),
                sources=inputs.sources_of(shown),
                group=name,
            )  # fmt: skip


def variation_table(inputs: Inputs, measurement: str) -> Iterator[Table]:
    """Yield the standard deviations of a test by source; nothing without any."""
    rows = inputs.where("variation", measurement=measurement)
    if rows:
        yield table(
            f"variation-{inputs.measurements.index(measurement) + 1}",
            f"{measurement}: what makes the values vary",
            (
                words("", "subject", lambda row: heading(row["metric"], None)),
                words("Source", lambda row: SOURCES[row["source"]]),
                *percentages(sd_pct="Standard deviation"),
                Field("95 % interval", lambda row: Cell(f"{percent(row['low_pct'])} to {percent(row['high_pct'])}")),
                *fields(cells="Cells"),
                Field("From", lambda row: Cell(f"{number(row['n'])} {_COUNTED[row['source']]}")),
            ),
            rows,
            "Of one value, each beyond what the sources before explain; rounds that correlate look more alike than "
            "they are. More recordings reduce only what recordings cause; a claim about a model rests on specimens.",
            collapsed=True,
        )
