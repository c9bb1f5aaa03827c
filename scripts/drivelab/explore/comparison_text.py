"""A comparison as text: a table for the terminal, Markdown for a pull request, JUnit XML for a build server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree

from rich.console import Console
from rich.table import Table
from rich.text import Text

from drivelab.analysis.verdict import BETTER, IN_RECORDINGS, WORSE
from drivelab.core.terminal import print_table, visible
from drivelab.explore.compare import Comparison
from drivelab.explore.comparison_lines import FAIL_ON, Line, Lines, lines
from drivelab.report.sentences import mark

_COLOURS = {**dict.fromkeys(BETTER, "green"), **dict.fromkeys(WORSE, "red")}
_SPECIAL = str.maketrans({character: f"\\{character}" for character in r"\`*_[]|<>"})


def print_values(comparison: Comparison, names: tuple[str, str], console: Console, *, every: bool) -> None:
    """Print a line for each value, and the reasons that weaken its verdict; those of all values once."""
    shown = lines(comparison, every=every)
    columns, right = _columns(shown, names)
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(Text(column), justify="right" if column in right else "left")
    for line in shown.lines:
        fields = _fields(shown, line)
        styles = {line.outcome: _COLOURS.get(line.outcome, "")}
        table.add_row(*(Text(field, style=styles.get(field.partition(" [")[0], "")) for field in fields))
    print_table(table, console)
    for reason in _reasons(shown):
        console.print(reason, markup=False)


def markdown(comparison: Comparison, headline: str, *, every: bool) -> str:
    """Return a comparison as a table in Markdown, with its headline and all reasons."""
    shown = lines(comparison, every=every)
    columns, right = _columns(shown, (comparison.basis, comparison.comparison))
    rows = [columns, ["--:" if column in right else ":--" for column in columns]]
    rows += [
        [field.translate(_SPECIAL) for field in _fields(shown, replace(line, continues=False))] for line in shown.lines
    ]
    labels = [f"Labels: {', '.join(comparison.labels)}"] if comparison.labels else []
    parts = (f"**{headline.translate(_SPECIAL)}**", *(label.translate(_SPECIAL) for label in labels))
    table = "\n".join(f"| {' | '.join(row)} |".replace("\n", " ") for row in rows)
    reasons = "\n".join(f"* {reason.translate(_SPECIAL)}" for reason in _reasons(shown))
    return visible("\n\n".join(filter(None, (*parts, table, reasons)))) + "\n"


def junit(comparison: Comparison, fail_on: Sequence[str]) -> str:
    """Return a comparison as JUnit XML: a test case for each value, which fails if its outcome is refused."""
    shown = lines(comparison, every=True)
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
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _columns(shown: Lines, names: tuple[str, str]) -> tuple[list[str], set[str]]:
    """Return the headings, and those of numbers; without intervals there is no column for them."""
    several, intervals, unreplicated = _kinds(shown)
    delta = "delta in\nthese recordings" if unreplicated else "delta"
    numbers = [*names, delta, *(["interval"] if intervals else [])]
    columns = [*(["test"] if several else []), "workload", *names, "unit", *numbers[2:]]
    return [*columns, *([] if unreplicated else ["verdict"])], set(numbers)


def _fields(shown: Lines, line: Line) -> list[str]:
    several, intervals, unreplicated = _kinds(shown)
    reasons = mark(line.reasons)
    return [
        *(["" if line.continues else line.measurement] if several else []),
        f"  {line.metric}" if line.continues else line.workload,
        line.basis, line.comparison, line.unit,
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
