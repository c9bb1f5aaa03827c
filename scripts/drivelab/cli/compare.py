"""`drivelab compare`: compare any two groups of recordings."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.core.errors import UserError
from drivelab.core.units import counted, format_percentage

if TYPE_CHECKING:
    from rich.console import Console

    from drivelab.explore.compare import Comparison, Terms

DIFFERENCES_FORBIDDEN = 3
"""Exit status if something differs unintentionally and --forbid-differences is given."""
_STEPS = "the steps of the protocol"
"""Shown instead of the digest that the table `conditions` holds."""
_MOST = 12
"""Number of differences, or of values of one side only, that are listed; the rest is counted."""


def add_parser(commands: Any) -> None:
    """Register `compare`."""
    parser = commands.add_parser(
        "compare",
        help="compare any two drives, hosts, firmwares or dates",
        description="Compares the recordings of two selectors; the first is the basis. A selector is a drive (op7, "
        "op7@platform) or KEY=VALUE parts joined by commas: drive, host, firmware, kernel, fio, measurement, run, "
        "since, until, recording. FOLDER:SELECTOR selects from another results folder, or from imported results.",
    )
    parser.add_argument("basis", metavar="A", help="selector of the basis, which B is compared with")
    parser.add_argument("comparison", metavar="B", help="selector of the recordings to compare")
    parser.add_argument(
        "--study", type=Path, metavar="FILE", help="study file to take results folder, margin and confidence from"
    )
    parser.add_argument("--results", type=Path, metavar="DIR", help="results folder (default: the study's, or results)")
    parser.add_argument("--margin", metavar="SHARE", help="smaller differences count as the same (default: 5%%)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument(
        "--forbid-differences",
        action="store_true",
        help=f"if anything differs that the selectors do not name, do not compare and exit with status "
        f"{DIFFERENCES_FORBIDDEN}",
    )
    parser.set_defaults(handler=_compare)


def _compare(options: argparse.Namespace) -> int:
    from drivelab.explore.compare import compare
    from drivelab.explore.row_selection import parse

    results, terms = _terms(options)
    comparison = compare(parse(options.basis), parse(options.comparison), results, terms)
    if options.json:
        json.dump(as_mapping(comparison), sys.stdout, indent=1, ensure_ascii=False)
        print()
    else:
        _show(comparison)
    return DIFFERENCES_FORBIDDEN if terms.forbid and len(comparison.unintended) else 0


def _terms(options: argparse.Namespace) -> tuple[Path, Terms]:
    from drivelab.explore.compare import Terms
    from drivelab.plan.restored import restored_folder
    from drivelab.plan.schema import ROOT

    results, judged = Path("results"), {}
    if options.study is not None:
        from drivelab.plan.study import load_study

        study = load_study(options.study)
        results = (restored_folder(options.study) or ROOT) / study.results
        judged = {name: getattr(study, name) for name in ("margin_pct", "rse_threshold_pct")}
        judged["confidence_pct"] = study.verdict_confidence_pct
    if options.margin is not None:
        judged["margin_pct"] = _margin_pct(options.margin)
    return options.results or results, Terms(**judged, forbid=options.forbid_differences)


def _margin_pct(text: str) -> float:
    from drivelab.core.units import parse_share

    try:
        share = parse_share(text)
    except UserError as error:
        raise UserError(f"--margin: {error}") from None
    if not 0 < share < 1:
        raise UserError(f"--margin is '{text}'; give a share above 0% and below 100%, such as 3%")
    return 100 * share


def as_mapping(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison for JSON: `counts` by verdict, rows of `deltas`, `differences`, `exclusions`."""
    return {
        "basis": comparison.basis,
        "comparison": comparison.comparison,
        "margin_pct": comparison.terms.margin_pct,
        "confidence_pct": comparison.terms.confidence_pct,
        "counts": comparison.counts,
        "meant_to_differ": list(comparison.meant),
        "recordings": comparison.recordings,
        "recorded_on_neither_side": comparison.unknown,
        "adjusted_for_comparisons": comparison.tested,
        "only_on_one_side": comparison.alone,
        "different_measurements": comparison.measurements,
        **{
            name: json.loads(table.to_json(orient="records", double_precision=15))
            for name, table in (("differences", comparison.differences), ("exclusions", comparison.exclusions),
                                ("deltas", comparison.deltas))
        },
    }  # fmt: skip


def headline(comparison: Comparison) -> str:
    """Return a sentence with the number of values of each verdict."""
    counts = ", ".join(f"{number} {verdict}" for verdict, number in comparison.counts.items())
    number = comparison.tested
    once = "IOPS, throughput and mean latency of a cell count once"
    adjusted = f"adjusted for {counted(number, 'comparison')}: {once}" if number else "no value could be tested"
    return (
        f"{comparison.comparison} against {comparison.basis}: {counts} (margin {comparison.terms.margin_pct:g} %, "
        f"confidence {comparison.terms.confidence_pct:g} %, {adjusted})"
    )


def _show(comparison: Comparison) -> None:
    from rich.markup import escape

    from drivelab.analysis.deltas.doubts import numbered
    from drivelab.cli.query import wide_console

    console = wide_console()
    console.print(f"[bold]{escape(headline(comparison))}[/]")
    console.print(
        escape(f"Meant to differ: {_facets(comparison.differences[comparison.differences['intended'].astype(bool)])}")
    )
    if comparison.measurements:
        sides = " with ".join(f"{name} of {side}" for side, name in comparison.measurements.items())
        console.print(escape(f"Different measurements, compared cell by cell: {sides}"))
    unintended = comparison.unintended
    nothing = "nothing that was recorded" if comparison.unknown else "nothing"
    console.print(
        escape(f"Differs too: {_facets(unintended, nothing)}"), style="bold yellow" if len(unintended) else ""
    )
    if comparison.unknown:
        console.print(escape(f"Not recorded on either side, may differ: {', '.join(comparison.unknown)}"))
    for side, values in comparison.alone.items():
        if values:
            console.print(
                escape(f"Only in {side}: {len(values)} value{'s' if len(values) > 1 else ''}, {_first(values)}")
            )
    for row in comparison.exclusions.itertuples():
        console.print(escape(f"Left out: {row.recording}, {row.place}: {row.fault}, {row.words}"), style="yellow")
    marks, reasons = numbered(list(map(str, doubts)) for doubts in comparison.deltas["doubts"])
    _table(comparison, marks, console)
    for number, reason in enumerate(reasons, start=1):
        console.print(escape(f"[{number}] {reason}"))
    for note in dict.fromkeys(note for row in comparison.deltas["remarks"] for note in row):
        console.print(escape(f"Note: {note}."), style="dim")


def _facets(differences: Any, nothing: str = "nothing") -> str:
    """List each facet once, with the values of both sides."""
    from drivelab.analysis.deltas.differences import STEPS

    texts = dict.fromkeys(
        _STEPS
        if difference.facet == STEPS
        else f"{difference.facet} ({difference.basis_value} / {difference.comparison_value})"
        for difference in differences.itertuples()
    )
    return _first(tuple(texts)) or nothing


def _first(items: Sequence[str]) -> str:
    """List the first items; count the rest."""
    rest = f", and {len(items) - _MOST} more, see --json" if len(items) > _MOST else ""
    return f"{', '.join(items[:_MOST])}{rest}"


def _table(comparison: Comparison, marks: Sequence[tuple[int, ...]], console: Console) -> None:
    """Print a line for each value; `marks` numbers the reasons that weaken its verdict."""
    from rich.table import Table
    from rich.text import Text

    from drivelab.analysis.verdict import BETTER, WORSE
    from drivelab.cli.query import print_table
    from drivelab.report.numbers import heading, is_missing, number
    from drivelab.report.sentences import mark

    colours = {**dict.fromkeys(BETTER, "green"), **dict.fromkeys(WORSE, "red")}
    several = comparison.deltas["measurement"].nunique() > 1
    shown = Table(box=None, pad_edge=False)
    for name in (*(("test",) if several else ()), "cell", "metric"):
        shown.add_column(name)
    for name in (comparison.basis, comparison.comparison, "delta", "interval"):
        shown.add_column(Text(name), justify="right")
    shown.add_column("verdict")
    for row, row_marks in zip(comparison.deltas.itertuples(), marks, strict=True):
        values = ["" if is_missing(value) else number(value) for value in (row.basis_value, row.comparison_value)]
        verdict = Text(row.verdict, style=colours.get(row.verdict, ""))
        shown.add_row(
            *([Text(row.measurement)] if several else []),
            Text(row.cell_label),
            heading(row.metric, row.unit),
            *values,
            "" if row.delta_pct != row.delta_pct else f"{format_percentage(row.delta_pct, signed=True)} %",
            _interval(row.interval_low_pct, row.interval_high_pct),
            verdict + Text(mark(row_marks)),
        )
    print_table(shown, console)


def _interval(low_pct: float, high_pct: float) -> str:
    low, high = format_percentage(low_pct, signed=True), format_percentage(high_pct, signed=True)
    return "" if low_pct != low_pct else f"{low} to {high} %"
