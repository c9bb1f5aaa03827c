"""The comparison of the drives: scores, deltas, values by capacity and size, variation, conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from drivelab.analysis.deltas.differences import not_recorded_words, unknown
from drivelab.analysis.deltas.variation import HOSTS, RECORDINGS, SOURCES, SPECIMENS
from drivelab.core.grouping import grouped
from drivelab.core.units import format_size
from drivelab.criteria.inert import CANNOT_ACT, reason
from drivelab.report.delta import footnote, with_reasons
from drivelab.report.document import Cell, Table
from drivelab.report.headline import subject_of
from drivelab.report.inputs import Inputs, Row, main_question, of_drive
from drivelab.report.marks import marks, notes
from drivelab.report.numbers import DASH, heading, is_missing, metric_order, names, number, percent, size, text
from drivelab.report.sections.delta_tables import delta_cell, deltas_tables, longest_of, verdict_cell
from drivelab.report.sections.replays import traces
from drivelab.report.sections.values import summary_cell
from drivelab.report.table import Field, fields, of_each, table, words
from drivelab.tables.labels import SCORE, score_label

_FEWEST = 2
"""Capacities or block sizes that a table needs."""
_MANY_ROWS = 30
_PATTERNS = {"random": "RND", "sequential": "SEQ"}
_COUNTED = {RECORDINGS: "recordings", SPECIMENS: "drives", HOSTS: "platforms"}
"""What `n` counts, by source of variation."""


def comparison_tables(inputs: Inputs) -> tuple[Table, ...]:
    """Return scores, deltas, variation, values by capacity and block size, other differences, and traces."""
    compared = [
        replace(one, group=name)
        for name in inputs.measurements
        for tables in (deltas_tables, variation_table, capacity_table)
        for one in tables(inputs, name)
    ]
    compared += size_tables(inputs)
    asked = [one if one.question else replace(one, question=main_question(inputs, one.group)) for one in compared]
    return (*set_scores(inputs), *differences_tables(inputs), *asked, *host_settings(inputs.plans), *traces(inputs))


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
            has = {row["measurement"] for row in inputs.tables["summary"] if row["drive"] == drive}
            has |= {measurement.partition(".")[0] for measurement in has}
            lacking = [member for member in sets[name] if member not in has]
            return Cell(DASH, f"no {names(lacking)}" if lacking else "no run has all members", "missing")
        low, high = row["interval_low"], row["interval_high"]
        return summary_cell(row, "" if is_missing(low) else f"{number(low)} to {number(high)}")

    yield table(
        "scores",
        f"Scores, {basis} = 100",
        (
            words("Score", str),
            words("Of", lambda name: names(list(sets[name]))),
            *of_each(inputs.drives, score),
            *of_each(
                (drive for drive in inputs.drives if drive != basis),
                lambda drive, name: verdict_cell(by_place.get((name, drive))),
                f"{{}} against {basis}",
                text,
            ),
        ),
        sets,
        "A score is the geometric mean of its members relative to the basis; more is better. A drive that lacks "
        "a member has no score. Below a score: its interval over the recordings, from three on.",
        reasons=reasons,
    )


def capacity_table(inputs: Inputs, measurement: str) -> Iterator[Table]:
    """Yield the values of drives with different capacities, smallest first, with their deltas to the basis."""
    measured = [drive for drive in inputs.drives if inputs.of_key("summary", (drive, measurement))]
    capacities: dict[str, Any] = {drive: inputs.drive(drive).get("capacity_bytes") for drive in measured}
    known = {value for value in capacities.values() if isinstance(value, int | float) and not is_missing(value)}
    if len(known) < _FEWEST or not known >= set(capacities.values()):
        return
    drives = sorted(capacities, key=lambda drive: capacities[drive])
    rows = [row for drive in drives for row in inputs.of_key("summary", (drive, measurement))]
    by_parameter = grouped(rows, lambda row: (row["cell_label"], row["metric"]))
    deltas = inputs.where("deltas", measurement=measurement)
    by_place, longest = {(row["comparison"], subject_of(row)): row for row in deltas}, longest_of(deltas)

    def parameter(of_one: list[Row]) -> Cell:
        return Cell(of_one[0]["cell_label"], heading(of_one[0]["metric"], of_one[0]["unit"]))

    def value(drive: str, of_one: list[Row]) -> Cell:
        return summary_cell(of_drive(of_one, drive))

    def delta(drive: str, of_one: list[Row]) -> Cell:
        return delta_cell(inputs, by_place.get((drive, subject_of(of_one[0]))), longest)

    columns = [words("Parameter", parameter)]
    for drive in drives:
        columns += of_each([drive], value, f"{size(capacities[drive])} ({{}})")
        columns += of_each([drive] if of_drive(deltas, drive, "comparison") else [], delta, "Δ {}")
    compared = f"Δ: against {inputs.study.get('basis')}, the basis; positive is better. " if deltas else ""
    yield table(
        f"capacities-{inputs.measurements.index(measurement) + 1}",
        f"{measurement}: by capacity",
        columns,
        sorted(by_parameter.values(), key=lambda of_one: metric_order(of_one[0]["metric"])),
        f"{compared}{footnote(deltas)}",
        sources=inputs.sources_of(rows),
        collapsed=len(by_parameter) > _MANY_ROWS,
    )


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
                *fields(percent, sd_pct="Standard deviation"),
                Field("95 % interval", lambda row: Cell(f"{percent(row['low_pct'])} to {percent(row['high_pct'])}")),
                *fields(cells="Cells"),
                Field("From", lambda row: Cell(f"{number(row['n'])} {_COUNTED[row['source']]}")),
            ),
            rows,
            "Of one value, each beyond what the sources before explain; rounds are part of their recording. More "
            "recordings reduce only what recordings cause; a claim about a model rests on specimens.",
            collapsed=True,
        )


def differences_tables(inputs: Inputs) -> Iterator[Table]:
    """Yield the differences of the compared pairs, unintended ones first, and the conditions not recorded."""
    rows = inputs.tables["differences"]
    by_knowledge = grouped(rows, lambda row: unknown(row["basis_value"], row["comparison_value"]))
    known, unrecorded = by_knowledge.get(False, []), by_knowledge.get(True, [])
    measurements = len({row["measurement"] for row in rows})

    def columns(condition: str, intended: str) -> tuple[Field, ...]:
        return (
            words(condition, "facet", "comparison"), words(intended, _intended),
            words(f"{rows[0]['basis']} (basis)", "basis_value"), words("Compared drive", "comparison_value"),
            words("In", lambda row: "every test" if len(row["tests"]) == measurements else ", ".join(row["tests"])),
        )  # fmt: skip

    if known:
        note = "An unintended difference may explain a delta. The verdicts list it too."
        yield table("ceteris-paribus", "Differences between the compared drives", columns("Difference", "Intended?"),
                    _by_pair(known), note, collapsed=len(known) > _MANY_ROWS)  # fmt: skip
    if unrecorded:
        caption = not_recorded_words(len({row["facet"] for row in unrecorded}))
        yield table("conditions-not-recorded", caption, columns("Condition", "Meant to differ?"),
                    _by_pair(unrecorded), "Nobody knows whether these conditions are equal.",
                    collapsed=True)  # fmt: skip


def _by_pair(differences: Sequence[Row]) -> list[Row]:
    """Return a row for each condition of a pair with its `tests`, unintended ones first."""
    names = ("comparison", "facet", "basis_value", "comparison_value", "intended", "kind")
    groups = grouped(differences, lambda row: tuple(str(row[name]) for name in names))
    rows = [(alike[0], dict.fromkeys(row["measurement"] for row in alike)) for alike in groups.values()]
    return sorted(({**row, "tests": list(tests)} for row, tests in rows), key=lambda row: bool(row["intended"]))


def _intended(row: Row) -> Cell:
    if row["kind"] == CANNOT_ACT:
        return Cell(CANNOT_ACT, reason(str(row["facet"])))
    if row["intended"]:
        return Cell("yes")
    return Cell("no" if unknown(row["basis_value"], row["comparison_value"]) else "NO", tone="mark")


def host_settings(plans: Sequence[Row]) -> Iterator[Table]:
    """Yield a row for each setting and state; nothing if all recordings used the virtual clock."""
    checked = [plan for plan in plans if plan.get("settings") is not None]
    if not checked:
        return
    found = [
        {**row, "scope": "host" if row["scope"] == "host" else f"drive {plan['drive']}", "recording": plan["recording"]}
        for plan in checked
        for row in plan["settings"]
    ]
    names = ("name", "scope", "state", "wanted", "effect")
    rows = []
    for alike in grouped(found, lambda row: tuple(row[name] for name in names)).values():
        count = len({row["recording"] for row in alike})
        rows.append({**alike[0], "recordings": "all" if count == len(checked) else f"{count} of {len(checked)}"})
    scenarios = ", ".join(dict.fromkeys(str(plan.get("scenario")) for plan in checked))
    nothing = {**dict.fromkeys(names, ""), "name": "All settings", "state": "as wanted", "recordings": "all"}
    yield table(
        "host-settings",
        f"Host settings that differ from the scenario ({scenarios})",
        (
            words("Setting", "name", "scope"),
            words("State", "state", tone=lambda _: "mark" if rows else ""),
            *of_each(("Wanted", "Effect", "Recordings"), lambda title, row: Cell(row[title.lower()]), show=text),
        ),
        rows or [nothing],
        "Run 'drivelab doctor' to see all settings and how to change them. With 'host_settings: apply', the study "
        "changes what can be changed while it runs.",
    )  # fmt: skip
