"""The values of a comparison as lines for people, in words, and as a text for the terminal, Markdown or JUnit XML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pandas as pd
from rich.text import Text

from drivelab.analysis.deltas.doubts import mark, numbered
from drivelab.analysis.deltas.inference import Value, main_values
from drivelab.analysis.verdict import (
    BETTER,
    CANNOT_TELL,
    FASTER_BEYOND,
    IN_RECORDINGS,
    NOT_COMPARED,
    SLOWER_BEYOND,
    WORSE,
)
from drivelab.core.grouping import grouped
from drivelab.core.terminal import print_table, visible, wide_console
from drivelab.core.units import format_percentage, scaled
from drivelab.explore.compare import Comparison
from drivelab.report.numbers import capital, is_missing, metric_name, number, unit_of, value_words

FAIL_ON: Mapping[str, tuple[str, ...]] = {
    "slower": (SLOWER_BEYOND,),
    "different": (SLOWER_BEYOND, FASTER_BEYOND),
    "undecided": (CANNOT_TELL, IN_RECORDINGS, NOT_COMPARED),
}
"""Outcomes that a check may refuse, by what the user asks for: only differences beyond the margin."""


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
    continues: bool = False
    """Whether the line above has the same workload."""
    repeats: bool = False
    """Whether the line above has the same value of another side."""


@dataclass(frozen=True)
class Lines:
    """All lines, and the reasons that weaken their verdicts."""

    lines: tuple[Line, ...]
    of_all: tuple[str, ...]
    """Reasons that hold for every value."""
    reasons: tuple[str, ...]
    """The others; the first is number 1."""

    @property
    def texts(self) -> list[str]:
        return [*(f"All values: {reason}" for reason in self.of_all),
                *(f"[{number}] {reason}" for number, reason in enumerate(self.reasons, start=1))]  # fmt: skip


def lines(comparisons: Sequence[Comparison]) -> Lines:
    """Return the lines of comparisons with the same basis; those of a value follow each other.

    Metrics that say the same (IOPS, throughput, mean latency) have one line.
    """
    deltas = pd.concat([comparison.deltas for comparison in comparisons], ignore_index=True)
    loads = {comparison.comparison: comparison.loads for comparison in comparisons}
    marks, reasons = numbered(list(map(str, doubts)) for doubts in deltas["doubts"])
    of_all = sorted(set.intersection(*map(set, marks)))
    others = [note for note in range(1, len(reasons) + 1) if note not in of_all]
    marks = [tuple(others.index(note) + 1 for note in of_row if note not in of_all) for of_row in marks]
    found: list[Line] = []
    above: tuple[str, str, str] = ("", "", "")
    for position in _by_value(deltas, _main(deltas, marks)):
        row = next(deltas.iloc[[position]].itertuples())
        place = (row.measurement, row.cell_label, row.metric)
        line = _line(row, loads[row.comparison].get(place[:2]), marks[position])
        found.append(replace(line, continues=place[:2] == above[:2], repeats=place == above))
        above = place
    return Lines(tuple(found), tuple(reasons[note - 1] for note in of_all), tuple(reasons[note - 1] for note in others))


def _by_value(deltas: pd.DataFrame, positions: Iterable[int]) -> list[int]:
    """Sort positions so that those of a cell, and of a value, follow each other, in the order of the first ones."""
    chosen = deltas.iloc[list(positions)]
    by_cell = chosen.groupby(["measurement", "cell_label"], sort=False).ngroup()
    by_value = chosen.groupby(["measurement", "cell_label", "metric"], sort=False).ngroup()
    return [position for *_, position in sorted(zip(by_cell, by_value, chosen.index, strict=True))]


def _line(delta: Any, load: str | None, reasons: tuple[int, ...]) -> Line:
    values = [float("nan") if is_missing(value) else value for value in (delta.basis_value, delta.comparison_value)]
    values, unit = scaled(values, unit_of(delta.metric, delta.unit))
    basis, comparison = ("" if value != value else number(value) for value in values)
    return Line(
        side=delta.comparison,
        measurement=delta.measurement,
        workload=capital(value_words(delta.cell_label, delta.metric, load)),
        metric=metric_name(delta.metric),
        basis=basis,
        comparison=comparison,
        unit=unit,
        delta="" if delta.delta_pct != delta.delta_pct else f"{format_percentage(delta.delta_pct, signed=True)} %",
        interval=interval(delta.interval_low_pct, delta.interval_high_pct),
        outcome=delta.outcome,
        reasons=reasons,
    )


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
    p_value = "" if row.p_adjusted != row.p_adjusted else f"p = {row.p_adjusted:.2g}"
    how_sure = ", ".join(filter(None, (line.interval, "p < 0.001" if row.p_adjusted < 0.001 else p_value)))
    return f"{line.workload}: {line.delta}{f' ({how_sure})' if how_sure else ''}"


def failing(comparisons: Sequence[Comparison], wanted: Sequence[str]) -> dict[str, int]:
    """Return the number of tests with a refused outcome, for each of `wanted` (keys of FAIL_ON) that has any.

    IOPS, throughput and mean latency of a cell are one test.
    """
    outcomes = [line.outcome for line in lines(comparisons).lines]
    return {key: count for key in wanted if (count := sum(outcome in FAIL_ON[key] for outcome in outcomes))}


_COLOURS = {**dict.fromkeys(BETTER, "green"), **dict.fromkeys(WORSE, "red")}
_SPECIAL = str.maketrans({character: f"\\{character}" for character in r"\`*_[]|<>"})


def print_values(comparisons: Sequence[Comparison], names: Mapping[str, str]) -> None:
    """Print a line for each value, and the reasons that weaken its verdict; those of all values once.

    `names` has the heading of each side.
    """
    shown = lines(comparisons)
    columns = _columns(shown, names)
    rows = [
        [Text(text := column.text(line), style=_COLOURS.get(text.partition(" [")[0], "")) for column in columns]
        for line in shown.lines
    ]
    print_table([column.name for column in columns], rows, {column.name for column in columns if column.is_number})
    for reason in shown.texts:
        wide_console().print(reason, markup=False)


def markdown(comparisons: Sequence[Comparison], headlines: Sequence[str]) -> str:
    """Return comparisons as one table in Markdown, with the headline of each and all reasons."""
    shown = lines(comparisons)
    names = {side: side for comparison in comparisons for side in (comparison.basis, comparison.comparison)}
    columns = _columns(shown, names)
    whole = (replace(line, continues=False, repeats=False) for line in shown.lines)
    rows = [
        [column.name for column in columns],
        ["--:" if column.is_number else ":--" for column in columns],
        *([column.text(line).translate(_SPECIAL) for column in columns] for line in whole),
    ]
    of_data = dict.fromkeys(label for comparison in comparisons for label in comparison.labels)
    parts = [
        *(f"**{headline.translate(_SPECIAL)}**" for headline in headlines),
        f"Labels: {', '.join(of_data)}".translate(_SPECIAL) if of_data else "",
        "\n".join(f"| {' | '.join(row)} |".replace("\n", " ") for row in rows),
        "\n".join(f"* {reason.translate(_SPECIAL)}" for reason in shown.texts),
    ]
    return visible("\n\n".join(filter(None, parts))) + "\n"


def junit(comparisons: Sequence[Comparison], fail_on: Sequence[str]) -> str:
    """Return comparisons as JUnit XML, a suite for each, and a test case for each test, which fails if it is refused.

    IOPS, throughput and mean latency of a cell are one test.
    """
    suites = [_suite(comparison, fail_on) for comparison in comparisons]
    root = suites[0]
    if len(suites) > 1:
        root = ElementTree.Element("testsuites")
        root.extend(suites)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(comparison: Comparison, fail_on: Sequence[str]) -> ElementTree.Element:
    refused = {outcome for key in fail_on for outcome in FAIL_ON[key]}
    suite = ElementTree.Element("testsuite", name=visible(f"{comparison.comparison} against {comparison.basis}"))
    for line in lines([comparison]).lines:
        name = f"{line.workload.partition(': ')[0]}: {line.metric}"
        case = ElementTree.SubElement(suite, "testcase", classname=visible(line.measurement), name=visible(name))
        text = f"{line.outcome}: {line.basis} to {line.comparison} {line.unit}, {line.delta or 'no delta'}"
        words = visible("; ".join([text, *comparison.labels]))
        if line.outcome in refused:
            ElementTree.SubElement(case, "failure", message=words)
        elif line.outcome in FAIL_ON["undecided"]:
            ElementTree.SubElement(case, "skipped", message=words)
        else:
            ElementTree.SubElement(case, "system-out").text = words
    counts = {"tests": "testcase", "failures": "testcase/failure", "skipped": "testcase/skipped"}
    suite.attrib.update({key: str(len(suite.findall(path))) for key, path in counts.items()})
    return suite


class _Column(NamedTuple):
    """A column of the table of values."""

    name: str
    text: Callable[[Line], str]
    is_number: bool = False
    is_shown: bool = True


def _columns(shown: Lines, names: Mapping[str, str]) -> list[_Column]:
    """Return the columns; without intervals there is none for them, and without replication none for verdicts.

    With several sides, the basis has a column, and each line names the side that it compares.
    """
    intervals = any(line.interval for line in shown.lines)
    unreplicated = all(line.outcome == IN_RECORDINGS for line in shown.lines)
    basis, *sides = names.values()
    columns = (
        _Column("test", lambda line: "" if line.continues else line.measurement,
                is_shown=len({line.measurement for line in shown.lines}) > 1),
        _Column("workload", lambda line: "" if line.repeats else "  " * line.continues + (
            line.metric if line.continues else line.workload)),
        _Column(basis, lambda line: line.basis, is_number=True),
        _Column("compared", lambda line: names[line.side], is_shown=len(sides) > 1),
        _Column(sides[0] if len(sides) == 1 else "value", lambda line: line.comparison, is_number=True),
        _Column("unit", lambda line: line.unit),
        _Column("delta in\nthese recordings", lambda line: line.delta + mark(line.reasons), is_number=True,
                is_shown=unreplicated),
        _Column("delta", lambda line: line.delta, is_number=True, is_shown=not unreplicated),
        _Column("interval", lambda line: line.interval, is_number=True, is_shown=intervals),
        _Column("verdict", lambda line: line.outcome + mark(line.reasons), is_shown=not unreplicated),
    )  # fmt: skip
    return [column for column in columns if column.is_shown]


_CELL = ["measurement", "cell_label"]
_COLUMNS = ["drive", *_CELL, "metric", "value", "unit", "statistic", "n", "samples", "scope", "verdict",
            "taint_reason", "host_limit", "reduced", "virtual", "clock", "recordings", "evidence"]  # fmt: skip


def origins(comparison: Comparison) -> pd.DataFrame:
    """Return a row for each compared value of both sides, with columns of table `summary`.

    `drive` is the side. `recordings` and `evidence` are paths, except of imported values.
    """
    values = comparison.values.merge(comparison.deltas[[*_CELL, "metric"]].drop_duplicates())[_COLUMNS]
    for name in ("recordings", "evidence"):
        roots = [comparison.folders[side] / "recordings" for side in values["drive"]]
        paths = [
            [(root / place, place) for place in map(str, places)]
            for root, places in zip(roots, values[name], strict=True)
        ]
        values[name] = [[str(path) if path.is_dir() else place for path, place in of_value] for of_value in paths]
    return values


def origin_lines(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yield lines for each cell: of each side the statistics, the recordings, their cells and the first one's job."""
    values = pd.concat([origins(comparison) for comparison in comparisons])
    rows = values.drop_duplicates(["drive", *_CELL, "metric"]).to_dict("records")
    for (measurement, label), of_cell in grouped(rows, lambda row: (row["measurement"], row["cell_label"])).items():
        yield f"{measurement}, {label}"
        for side, of_side in grouped(of_cell, lambda row: row["drive"]).items():
            metrics = grouped(of_side, lambda row: row["statistic"])
            yield f"  {side}: " + "; ".join(
                f"{statistic} of {', '.join(row['metric'] for row in of_one)}" for statistic, of_one in metrics.items()
            )
            evidence = dict.fromkeys(place for row in of_side for place in row["evidence"])
            for recording in dict.fromkeys(name for row in of_side for name in row["recordings"]):
                cells = [place.removeprefix(f"{recording}/") for place in evidence if place.startswith(f"{recording}/")]
                yield f"    {recording}{': ' if cells else ''}{', '.join(cells)}"
            job = next((path for place in evidence if (path := Path(place) / "job.fio").is_file()), None)
            if job is not None:
                yield f"    job.fio: {' '.join(job.read_text(encoding='utf-8', errors='replace').split())}"
