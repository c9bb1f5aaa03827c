"""The values of a comparison as lines for people, in words, and as a text for the terminal, Markdown or JUnit XML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from drivelab.analysis.deltas.doubts import numbered
from drivelab.analysis.deltas.main_values import Value, main_values
from drivelab.analysis.verdict import BETTER, CANNOT_TELL, IN_RECORDINGS, NOT_COMPARED, WORSE
from drivelab.core.terminal import print_table, visible
from drivelab.core.units import format_percentage, scaled
from drivelab.explore.compare import Comparison
from drivelab.report.numbers import capital, is_missing, metric_name, number, unit_of
from drivelab.report.sentences import mark, value_words

FAIL_ON: Mapping[str, tuple[str, ...]] = {
    "slower": WORSE,
    "different": (*WORSE, *BETTER),
    "undecided": (CANNOT_TELL, IN_RECORDINGS, NOT_COMPARED),
}
"""Outcomes that a check may refuse, by what the user asks for."""


@dataclass(frozen=True)
class Line:
    """One value of both sides."""

    side: str
    """The selector that is compared with the basis."""
    measurement: str
    workload: str
    """In words, with the metric unless the unit says it."""
    metric: str
    basis: str
    comparison: str
    unit: str
    delta: str
    """In percent, positive if the comparison is better; empty if unknown."""
    interval: str
    outcome: str
    reasons: tuple[int, ...]
    """Numbers of the reasons that weaken the verdict, from 1; those of all values are left out."""
    continues: bool
    """Whether the line above has the same workload."""
    repeats: bool
    """Whether the line above has the same value of another side."""


@dataclass(frozen=True)
class Lines:
    """All lines, and the reasons that weaken their verdicts."""

    lines: tuple[Line, ...]
    of_all: tuple[str, ...]
    """Reasons that hold for every value."""
    reasons: tuple[str, ...]
    """The others; the first is number 1."""


def lines(comparisons: Sequence[Comparison], *, every: bool) -> Lines:
    """Return the lines of comparisons with the same basis; those of a value follow each other.

    Metrics that say the same (IOPS, throughput, mean latency) have one line unless `every`.
    """
    deltas = pd.concat([comparison.deltas for comparison in comparisons], ignore_index=True)
    loads = {comparison.comparison: comparison.loads for comparison in comparisons}
    marks, reasons = numbered(list(map(str, doubts)) for doubts in deltas["doubts"])
    of_all = sorted(set.intersection(*map(set, marks)))
    others = [note for note in range(1, len(reasons) + 1) if note not in of_all]
    marks = [tuple(others.index(note) + 1 for note in of_row if note not in of_all) for of_row in marks]
    found: list[Line] = []
    above: tuple[str, str, str] = ("", "", "")
    for position in _by_value(deltas, range(len(deltas)) if every else _main(deltas, marks)):
        row = next(deltas.iloc[[position]].itertuples())
        place = (row.measurement, row.cell_label, row.metric)
        line = _line(row, loads[row.comparison].get(place[:2]), marks[position])
        found.append(replace(line, continues=place[:2] == above[:2], repeats=place == above))
        above = place
    return Lines(tuple(found), tuple(reasons[note - 1] for note in of_all), tuple(reasons[note - 1] for note in others))


def _by_value(deltas: pd.DataFrame, positions: Iterable[int]) -> list[int]:
    """Sort positions so that those of a cell, and of a value, follow each other, in the order of the first ones."""
    cells: dict[tuple[str, str], int] = {}
    values: dict[tuple[str, str, str], int] = {}
    places = {}
    for position in positions:
        cell, metric = tuple(deltas[name].iloc[position] for name in ("measurement", "cell_label")), deltas["metric"]
        value = (*cell, metric.iloc[position])
        places[position] = (cells.setdefault(cell, len(cells)), values.setdefault(value, len(values)))
    return sorted(places, key=places.__getitem__)


def _line(delta: Any, load: str | None, reasons: tuple[int, ...]) -> Line:
    values = [float("nan") if is_missing(value) else value for value in (delta.basis_value, delta.comparison_value)]
    values, unit = scaled(values, unit_of(delta.metric, delta.unit))
    return Line(
        delta.comparison,
        delta.measurement,
        capital(value_words(delta.cell_label, delta.metric, load)),
        metric_name(delta.metric),
        _shown(values[0]),
        _shown(values[1]),
        unit,
        "" if delta.delta_pct != delta.delta_pct else f"{format_percentage(delta.delta_pct, signed=True)} %",
        interval(delta.interval_low_pct, delta.interval_high_pct),
        delta.outcome,
        reasons,
        continues=False,
        repeats=False,
    )


def _shown(value: float) -> str:
    return "" if value != value else number(value)


def _main(deltas: pd.DataFrame, marks: Sequence[tuple[int, ...]]) -> list[int]:
    """Return the positions of the values without twins that say the same."""
    names = ("comparison", "measurement", "cell_label", "metric", "outcome")
    rows = zip(*(deltas[name] for name in names), marks, strict=True)
    return list(main_values([Value((side, place), label, metric, (outcome, of_row))
                             for side, place, label, metric, outcome, of_row in rows]))  # fmt: skip


def interval(low_pct: float, high_pct: float) -> str:
    """Return an interval of a delta, as `+2.0 to +3.1 %`; empty if there is none."""
    low, high = format_percentage(low_pct, signed=True), format_percentage(high_pct, signed=True)
    return "" if low_pct != low_pct else f"{low} to {high} %"


def largest(comparison: Comparison) -> str:
    """Return the largest difference as `Random read 4 KiB, QD1: +20 % (+18 to +22 %, p = 0.001)`; empty without one.

    Decided differences come first.
    """
    every = comparison.deltas
    deltas = every.iloc[_main(every, [()] * len(every))]
    deltas = deltas[deltas["delta_pct"].notna() & (deltas["delta_pct"] != 0)]
    if deltas.empty:
        return ""
    decided = deltas[deltas["outcome"].isin((*BETTER, *WORSE))]
    rows = deltas if decided.empty else decided
    ratios = np.log1p(rows["delta_pct"].clip(lower=-99.99) / 100)  # so that -50 % is as large as +100 %
    row = next(rows.loc[[ratios.abs().idxmax()]].itertuples())
    line = _line(row, comparison.loads.get((row.measurement, row.cell_label)), ())
    how_sure = ", ".join(filter(None, (line.interval, _p_words(row.p_adjusted))))
    return f"{line.workload}: {line.delta}{f' ({how_sure})' if how_sure else ''}"


def _p_words(p_value: float) -> str:
    if p_value != p_value:
        return ""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"


def failing(comparisons: Sequence[Comparison], wanted: Sequence[str]) -> dict[str, int]:
    """Return the number of values with a refused outcome, for each of `wanted` (keys of FAIL_ON) that has any."""
    outcomes = pd.concat([comparison.deltas["outcome"] for comparison in comparisons])
    counts = {key: int(outcomes.isin(FAIL_ON[key]).sum()) for key in wanted}
    return {key: count for key, count in counts.items() if count}


_COLOURS = {**dict.fromkeys(BETTER, "green"), **dict.fromkeys(WORSE, "red")}
_SPECIAL = str.maketrans({character: f"\\{character}" for character in r"\`*_[]|<>"})


def print_values(comparisons: Sequence[Comparison], names: Mapping[str, str], console: Console, *, every: bool) -> None:
    """Print a line for each value, and the reasons that weaken its verdict; those of all values once.

    `names` has the heading of each side.
    """
    shown = lines(comparisons, every=every)
    columns, right = _columns(shown, names)
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(Text(column), justify="right" if column in right else "left")
    for line in shown.lines:
        fields = _fields(shown, line, names)
        styles = {line.outcome: _COLOURS.get(line.outcome, "")}
        table.add_row(*(Text(field, style=styles.get(field.partition(" [")[0], "")) for field in fields))
    print_table(table, console)
    for reason in _reasons(shown):
        console.print(reason, markup=False)


def markdown(comparisons: Sequence[Comparison], headlines: Sequence[str], *, every: bool) -> str:
    """Return comparisons as one table in Markdown, with the headline of each and all reasons."""
    shown = lines(comparisons, every=every)
    names = {side: side for comparison in comparisons for side in (comparison.basis, comparison.comparison)}
    columns, right = _columns(shown, names)
    rows = [columns, ["--:" if column in right else ":--" for column in columns]]
    rows += [
        [field.translate(_SPECIAL) for field in _fields(shown, replace(line, continues=False, repeats=False), names)]
        for line in shown.lines
    ]
    of_data = dict.fromkeys(label for comparison in comparisons for label in comparison.labels)
    labels = [f"Labels: {', '.join(of_data)}"] if of_data else []
    parts = (*(f"**{headline.translate(_SPECIAL)}**" for headline in headlines),
             *(label.translate(_SPECIAL) for label in labels))  # fmt: skip
    table = "\n".join(f"| {' | '.join(row)} |".replace("\n", " ") for row in rows)
    reasons = "\n".join(f"* {reason.translate(_SPECIAL)}" for reason in _reasons(shown))
    return visible("\n\n".join(filter(None, (*parts, table, reasons)))) + "\n"


def junit(comparisons: Sequence[Comparison], fail_on: Sequence[str]) -> str:
    """Return comparisons as JUnit XML, a suite for each: a test case for each value, which fails if it is refused."""
    suites = [_suite(comparison, fail_on) for comparison in comparisons]
    root = suites[0]
    if len(suites) > 1:
        root = ElementTree.Element("testsuites")
        root.extend(suites)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(comparison: Comparison, fail_on: Sequence[str]) -> ElementTree.Element:
    shown = lines([comparison], every=True)
    refused = {outcome for key in fail_on for outcome in FAIL_ON[key]}
    suite = ElementTree.Element("testsuite", name=visible(f"{comparison.comparison} against {comparison.basis}"))
    for line in shown.lines:
        name = f"{line.workload.partition(': ')[0]}: {line.metric}"
        case = ElementTree.SubElement(suite, "testcase", classname=visible(line.measurement), name=visible(name))
        words = f"{line.outcome}: {line.basis} to {line.comparison} {line.unit}, {line.delta or 'no delta'}"
        if line.outcome in refused:
            ElementTree.SubElement(case, "failure", message=visible(words))
        elif line.outcome in FAIL_ON["undecided"]:
            ElementTree.SubElement(case, "skipped", message=visible(words))
        else:
            ElementTree.SubElement(case, "system-out").text = visible(words)
    counts = {"tests": "testcase", "failures": "testcase/failure", "skipped": "testcase/skipped"}
    suite.attrib.update({key: str(len(suite.findall(path))) for key, path in counts.items()})
    return suite


def _columns(shown: Lines, names: Mapping[str, str]) -> tuple[list[str], set[str]]:
    """Return the headings, and those of numbers; without intervals there is no column for them.

    With several sides, the basis has a column, and each line names the side that it compares.
    """
    several, intervals, unreplicated = _kinds(shown)
    basis, *sides = names.values()
    numbers = [basis, sides[0] if len(sides) == 1 else "value"]
    delta = ["delta in\nthese recordings" if unreplicated else "delta", *(["interval"] if intervals else [])]
    columns = [
        *(["test"] if several else []), "workload", basis, *(["compared"] if len(sides) > 1 else []), numbers[1],
        "unit", *delta, *([] if unreplicated else ["verdict"]),
    ]  # fmt: skip
    return columns, {*numbers, *delta}


def _fields(shown: Lines, line: Line, names: Mapping[str, str]) -> list[str]:
    several, intervals, unreplicated = _kinds(shown)
    reasons = mark(line.reasons)
    return [
        *(["" if line.continues else line.measurement] if several else []),
        "" if line.repeats else f"  {line.metric}" if line.continues else line.workload,
        line.basis, *([names[line.side]] if len(names) > 2 else []), line.comparison, line.unit,
        line.delta + (reasons if unreplicated else ""),
        *([line.interval] if intervals else []),
        *([] if unreplicated else [line.outcome + reasons]),
    ]  # fmt: skip


def _kinds(shown: Lines) -> tuple[bool, bool, bool]:
    """Return whether there are several measurements, intervals, and differences without replication only."""
    return (
        len({line.measurement for line in shown.lines}) > 1,
        any(line.interval for line in shown.lines),
        all(line.outcome == IN_RECORDINGS for line in shown.lines),
    )


def _reasons(shown: Lines) -> list[str]:
    return [*(f"All values: {reason}" for reason in shown.of_all),
            *(f"[{number}] {reason}" for number, reason in enumerate(shown.reasons, start=1))]  # fmt: skip
