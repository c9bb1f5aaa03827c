"""`drivelab compare`: any recordings against any others."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.errors import UserError
from drivelab.units import format_percentage
from drivelab.words import counted

if TYPE_CHECKING:
    from rich.console import Console

    from drivelab.explore.compare import Comparison, Terms

DIFFERENCES_FORBIDDEN = 3
"""Exit status where something differs that was not meant to, and that was forbidden."""
_STEPS = "the steps of the protocol"
"""Of which the table `conditions` has a digest, which says nothing to people."""
_MOST = 12
"""Differences, and values that one side has alone, that are told in full; the others are counted."""


def add_parser(commands: Any) -> None:
    """Register `compare`."""
    one = commands.add_parser(
        "compare",
        help="compare any two drives, hosts, firmwares or dates",
        description="Compares what two selectors select; the first is the basis. A selector is a drive (op7, "
        "op7@platform) or KEY=VALUE parts joined by commas: drive, host, firmware, kernel, fio, measurement, run, "
        "since, until, recording. FOLDER:SELECTOR takes another folder of results, or one that was imported.",
    )
    one.add_argument("basis", metavar="A", help="selection that B is compared with")
    one.add_argument("comparison", metavar="B", help="selection that is compared")
    one.add_argument("--study", type=Path, metavar="FILE", help="take results folder, margin and confidence from it")
    one.add_argument("--results", type=Path, metavar="DIR", help="folder of results (default: the study's, or results)")
    one.add_argument("--margin", metavar="SHARE", help="differences within it are called the same (default: 5%%)")
    one.add_argument("--json", action="store_true", help="print everything as JSON")
    one.add_argument(
        "--forbid-differences",
        action="store_true",
        help=f"compare nothing, and end with status {DIFFERENCES_FORBIDDEN}, where something else differs than what "
        "the selectors ask for",
    )
    one.set_defaults(handler=_compare)


def _compare(options: argparse.Namespace) -> int:
    from drivelab.explore.compare import compare
    from drivelab.explore.selection import parse

    results, terms = _terms(options)
    found = compare(parse(options.basis), parse(options.comparison), results, terms)
    if options.json:
        json.dump(as_mapping(found), sys.stdout, indent=1, ensure_ascii=False)
        print()
    else:
        _show(found)
    return DIFFERENCES_FORBIDDEN if terms.forbid and len(found.unintended) else 0


def _terms(options: argparse.Namespace) -> tuple[Path, Terms]:
    from drivelab.config.restored import restored_folder
    from drivelab.config.schema import ROOT
    from drivelab.explore.compare import Terms

    results, judged = Path("results"), {}
    if options.study is not None:
        from drivelab.config.study import load_study

        study = load_study(options.study)
        results = (restored_folder(options.study) or ROOT) / study.results
        judged = {name: getattr(study, name) for name in ("margin_pct", "confidence_pct", "rse_threshold_pct")}
    if options.margin is not None:
        judged["margin_pct"] = _margin_pct(options.margin)
    return options.results or results, Terms(**judged, forbid=options.forbid_differences)


def _margin_pct(text: str) -> float:
    from drivelab.units import parse_share

    try:
        share = parse_share(text)
    except UserError as error:
        raise UserError(f"--margin: {error}") from None
    if not 0 < share < 1:
        raise UserError(f"--margin is '{text}'; give a share above 0% and below 100%, such as 3%")
    return 100 * share


def as_mapping(found: Comparison) -> dict[str, Any]:
    """All of a comparison for JSON: `counts` by verdict, rows of the tables `deltas`, `differences`, `exclusions`."""
    return {
        "basis": found.basis,
        "comparison": found.comparison,
        "margin_pct": found.terms.margin_pct,
        "confidence_pct": found.terms.confidence_pct,
        "counts": found.counts,
        "meant_to_differ": list(found.meant),
        "recordings": found.recordings,
        "recorded_on_neither_side": found.unknown,
        "adjusted_for_comparisons": found.tested,
        "only_on_one_side": found.alone,
        "different_measurements": found.measurements,
        **{
            name: json.loads(table.to_json(orient="records", double_precision=15))
            for name, table in (("differences", found.differences), ("exclusions", found.exclusions),
                                ("deltas", found.deltas))
        },
    }  # fmt: skip


def headline(found: Comparison) -> str:
    """How many values of each verdict there are."""
    counts = ", ".join(f"{number} {verdict}" for verdict, number in found.counts.items())
    number = found.tested
    once = "IOPS, throughput and mean latency of a cell count once"
    adjusted = f"adjusted for {counted(number, 'comparison')}: {once}" if number else "nothing could be tested"
    return (
        f"{found.comparison} against {found.basis}: {counts} (margin {found.terms.margin_pct:g} %, confidence "
        f"{found.terms.confidence_pct:g} %, {adjusted})"
    )


def _show(found: Comparison) -> None:
    from rich.markup import escape

    from drivelab.analysis.doubt_notes import numbered
    from drivelab.cli.wide import wide_console

    console = wide_console()
    console.print(f"[bold]{escape(headline(found))}[/]")
    console.print(escape(f"Meant to differ: {_told(found.differences[found.differences['intended'].astype(bool)])}"))
    if found.measurements:
        of_sides = " with ".join(f"{name} of {side}" for side, name in found.measurements.items())
        console.print(escape(f"Different measurements, compared cell by cell: {of_sides}"))
    other = found.unintended
    nothing = "nothing that was recorded" if found.unknown else "nothing"
    console.print(escape(f"Differs too: {_told(other, nothing)}"), style="bold yellow" if len(other) else "")
    if found.unknown:
        console.print(escape(f"Recorded on neither side, it may differ: {', '.join(found.unknown)}"))
    for side, values in found.alone.items():
        if values:
            console.print(
                escape(f"Only of {side}: {len(values)} value{'s' if len(values) > 1 else ''}, {_first(values)}")
            )
    for row in found.exclusions.itertuples():
        console.print(escape(f"Left out: {row.recording}, {row.place}: {row.fault}, {row.words}"), style="yellow")
    marks, reasons = numbered(list(map(str, doubts)) for doubts in found.deltas["doubts"])
    _table(found, marks, console)
    for number, reason in enumerate(reasons, start=1):
        console.print(escape(f"[{number}] {reason}"))
    for note in dict.fromkeys(note for row in found.deltas["remarks"] for note in row):
        console.print(escape(f"Note: {note}."), style="dim")


def _told(differences: Any, nothing: str = "nothing") -> str:
    """Each facet once, with the values of both sides."""
    from drivelab.analysis.differences import STEPS

    words = dict.fromkeys(
        _STEPS if one.facet == STEPS else f"{one.facet} ({one.basis_value} / {one.comparison_value})"
        for one in differences.itertuples()
    )
    return _first(tuple(words)) or nothing


def _first(words: Sequence[str]) -> str:
    """As many as can be read."""
    rest = f", and {len(words) - _MOST} more, see --json" if len(words) > _MOST else ""
    return f"{', '.join(words[:_MOST])}{rest}"


def _table(found: Comparison, marks: Sequence[tuple[int, ...]], console: Console) -> None:
    """A line for each value; `marks` are the numbers of the reasons why its verdict is no more."""
    from rich.table import Table
    from rich.text import Text

    from drivelab.cli.wide import print_table
    from drivelab.report.numbers import heading, is_missing, number
    from drivelab.report.reasons import mark

    colours = {"better": "green", "worse": "red"}
    several = found.deltas["measurement"].nunique() > 1
    shown = Table(box=None, pad_edge=False)
    for name in (*(("test",) if several else ()), "cell", "metric"):
        shown.add_column(name)
    for name in (found.basis, found.comparison, "delta", "interval"):
        shown.add_column(Text(name), justify="right")
    shown.add_column("verdict")
    for row, of_row in zip(found.deltas.itertuples(), marks, strict=True):
        values = ["" if is_missing(one) else number(one) for one in (row.basis_value, row.comparison_value)]
        verdict = Text(row.verdict, style=colours.get(row.verdict, ""))
        shown.add_row(
            *(Text(one) for one in ((row.measurement,) if several else ())),
            Text(row.cell_label),
            heading(row.metric, row.unit),
            *values,
            "" if row.delta_pct != row.delta_pct else f"{format_percentage(row.delta_pct, signed=True)} %",
            _interval(row.interval_low_pct, row.interval_high_pct),
            verdict + Text(mark(of_row)),
        )
    print_table(shown, console)


def _interval(low_pct: float, high_pct: float) -> str:
    low, high = format_percentage(low_pct, signed=True), format_percentage(high_pct, signed=True)
    return "" if low_pct != low_pct else f"{low} to {high} %"
