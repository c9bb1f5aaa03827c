"""`drivelab compare`: compare groups of recordings."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from drivelab.cli.completion import completed_by, drives
from drivelab.core.errors import UserError
from drivelab.core.terminal import print_json, print_table
from drivelab.core.units import counted

if TYPE_CHECKING:
    import pandas as pd

    from drivelab.explore.compare import Comparison, Terms
    from drivelab.explore.row_selection import Selector

DIFFERENCES_FORBIDDEN = 3
"""Exit status if something differs unintentionally and --forbid-differences is given."""
FAILED = {"slower": 4, "different": 5, "undecided": 6}
"""Exit status by what --fail-on refuses; the lowest one counts."""
RATED_FAILED, RATED_UNDECIDED = 3, 4
"""Exit statuses of --datasheet if a value fails, and if none fails but drivelab cannot tell for some."""
_OF_SELECTORS = ("margin", "markdown", "junit", "fail_on", "conditions", "origin", "forbid_differences")
"""Options that --datasheet does not take."""
_STEPS = "the steps of the protocol"
"""Shown instead of the digest that the table `conditions` holds."""
_LONGEST_NAME = 16
"""Characters of a selector that heads a column; longer ones are called A and B, so that a line fits 80 columns."""
_MOST = 12
"""Number of differences, or of values of one side only, that are listed; the rest is counted."""


def add_parser(commands: Any) -> None:
    """Register `compare`."""
    parser = commands.add_parser(
        "compare",
        help="compare any drives, hosts, firmwares or dates",
        description="Compares the recordings of each selector with those of the first, the basis. A selector is a "
        "drive (op7, op7@platform) or KEY=VALUE parts joined by commas: drive, host, firmware, kernel, fio, "
        "measurement, run, date, since, until, recording. FOLDER:SELECTOR selects from another results folder, or from "
        "imported results.",
    )
    selectors = parser.add_argument("selectors", nargs="+", metavar="SELECTOR", help="the basis, then the other sides")
    completed_by(selectors, drives)
    parser.add_argument(
        "--datasheet",
        type=Path,
        metavar="FILE",
        help="compare each selector with the rated values in FILE instead, such as config/ratings/MODEL.yaml: pass if "
        "the whole 95 %% interval is within the rated value and its tolerance, fail if none of it is, else cannot "
        f"tell. Exit status {RATED_FAILED} if a value fails, {RATED_UNDECIDED} if none fails but drivelab cannot tell "
        "for some",
    )
    parser.add_argument(
        "--study", type=Path, metavar="FILE", help="study file to take results folder, margin and confidence from"
    )
    parser.add_argument("--results", type=Path, metavar="DIR", help="results folder (default: the study's, or results)")
    parser.add_argument("--margin", metavar="SHARE", help="ignore smaller differences (default: the study's, or 5%%)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print everything as JSON")
    form.add_argument("--markdown", action="store_true", help="print a table in Markdown, as for a pull request")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="also write the values as JUnit XML")
    parser.add_argument(
        "--fail-on",
        type=outcomes,
        default=[],
        metavar="OUTCOME,...",
        help="exit with status 4 if a value is slower beyond the margin, 5 if any is different beyond it, 6 if any is "
        "undecided: these words",
    )
    parser.flag("--conditions", "list every condition that differs or is not recorded, with the values of both sides")
    parser.flag("--origin", "list where each value comes from: statistic, recordings, cells, and fio's job")
    parser.flag(
        "--forbid-differences",
        f"if anything differs that the selectors do not name, do not compare and exit with status "
        f"{DIFFERENCES_FORBIDDEN}",
    )
    parser.set_defaults(handler=_compare)


def _compare(options: argparse.Namespace) -> int:
    from drivelab.explore.compare import WITHIN_DATES, compare
    from drivelab.explore.comparison_lines import failing, junit, markdown
    from drivelab.explore.row_selection import parse

    selectors = [parse(text) for text in options.selectors]
    results, terms = _terms(options, selectors)
    if options.datasheet is not None:
        return _compare_with_data_sheet(options, selectors, results)
    if len(selectors) < 2:
        raise UserError("give two selectors or more, the basis first; or one with --datasheet FILE")
    comparisons = compare(selectors, results, terms)
    if options.json:
        bodies = [as_mapping(comparison, origin=options.origin) for comparison in comparisons]
        print_json(bodies if len(bodies) > 1 else bodies[0])
    elif options.markdown:
        print(markdown(comparisons, list(map(headline, comparisons))), end="")
    else:
        _show(comparisons, options)
    if options.junit is not None:
        options.junit.write_text(junit(comparisons, options.fail_on), encoding="utf-8")
    if terms.forbid and any(comparison.forbidden for comparison in comparisons):
        return DIFFERENCES_FORBIDDEN
    found = failing(comparisons, options.fail_on)
    limit = f"; {WITHIN_DATES}" if any(WITHIN_DATES in comparison.labels for comparison in comparisons) else ""
    for key, number in found.items():
        print(f"drivelab: {counted(number, 'test')} {key}, which --fail-on refuses{limit}", file=sys.stderr)
    return min((FAILED[key] for key in found), default=0)


def _compare_with_data_sheet(options: argparse.Namespace, selectors: Sequence[Selector], results: Path) -> int:
    from drivelab.explore.datasheet import CANNOT_TELL, FAIL, data_sheet_check, print_check
    from drivelab.plan.ratings import load_data_sheet

    for name in _OF_SELECTORS:
        if getattr(options, name):
            raise UserError(f"--{name.replace('_', '-')} is not for --datasheet; leave it out")
    checked = data_sheet_check(results, load_data_sheet(options.datasheet), selectors)
    if options.json:
        print_json(_records(checked))
    else:
        print_check(checked)
    verdicts = set(checked["verdict"])
    return RATED_FAILED if FAIL in verdicts else RATED_UNDECIDED if CANNOT_TELL in verdicts else 0


def _records(table: pd.DataFrame) -> Any:
    """Return the rows of a table for JSON."""
    return json.loads(table.to_json(orient="records", double_precision=15))


def outcomes(text: str) -> list[str]:
    """Parse the words of --fail-on."""
    from drivelab.core.errors import suggestion

    for name in text.split(","):
        if name not in FAILED:
            raise argparse.ArgumentTypeError(f"'{name}' is unknown; {suggestion(name, FAILED)}")
    return text.split(",")


def _terms(options: argparse.Namespace, selectors: Sequence[Selector]) -> tuple[Path, Terms]:
    from drivelab.explore.compare import Terms, study_terms
    from drivelab.plan.places import ROOT, restored_folder

    results, judged = options.results or Path("results"), {}
    if options.study is not None:
        from drivelab.plan.study import load_study

        study = load_study(options.study)
        results = options.results or (restored_folder(options.study) or ROOT) / study.results
        judged = {name: getattr(study, name) for name in ("margin_pct", "rse_threshold_pct")}
        judged["confidence_pct"] = study.verdict_confidence_pct
    if options.margin is not None:
        judged["margin_pct"] = margin_pct(options.margin)
    judged = study_terms(selector.folder or results for selector in selectors) | judged
    return results, Terms(**judged, forbid=options.forbid_differences)


def margin_pct(text: str) -> float:
    """Return the share of --margin in percent; raises UserError for anything else."""
    from drivelab.core.units import parse_share

    try:
        share = parse_share(text)
    except UserError as error:
        raise UserError(f"--margin: {error}") from None
    if not 0 < share < 1:
        raise UserError(f"--margin is '{text}'; give a share above 0% and below 100%, such as 3%")
    return 100 * share


def as_mapping(comparison: Comparison, *, origin: bool) -> dict[str, Any]:
    """Return a comparison for JSON, with `counts` by outcome and every condition that differs or is not recorded.

    With `origin`, it also has the rows of table `summary` of both sides.
    """
    from drivelab.analysis.deltas.differences import known_differences
    from drivelab.explore.comparison_lines import origins

    return {
        "basis": comparison.basis,
        "comparison": comparison.comparison,
        "margin_pct": comparison.terms.margin_pct,
        "confidence_pct": comparison.terms.confidence_pct,
        "counts": comparison.counts,
        "labels": list(comparison.labels),
        "meant_to_differ": list(comparison.meant),
        "recordings": comparison.recordings,
        "adjusted_for_comparisons": comparison.tested,
        "only_on_one_side": comparison.alone,
        "different_measurements": comparison.measurements,
        "differences": _records(known_differences(comparison.differences)),
        "not_recorded": _records(comparison.not_recorded),
        "exclusions": _records(comparison.exclusions),
        "deltas": _records(comparison.deltas),
        **({"origin": _records(origins(comparison))} if origin else {}),
    }


def headline(comparison: Comparison) -> str:
    """Return a sentence with the number of values of each outcome, and the largest difference."""
    from drivelab.analysis.verdict import IN_RECORDINGS
    from drivelab.explore.comparison_lines import largest

    counts = ", ".join(
        f"{counted(number, 'value')} {outcome}, without a verdict"
        if outcome == IN_RECORDINGS
        else f"{number} {outcome}"
        for outcome, number in comparison.counts.items()
    )
    number, most, terms = comparison.tested, largest(comparison), comparison.terms
    once = "IOPS, throughput and mean latency of a cell count once"
    adjusted = f"adjusted for {counted(number, 'comparison')}: {once}" if number else "no value could be tested"
    return (
        f"{comparison.comparison} against {comparison.basis}: {counts}{f'; largest: {most}' if most else ''} "
        f"(margin {terms.margin_pct:g} %, confidence {terms.confidence_pct:.4g} %, {adjusted})"
    )


def _show(comparisons: Sequence[Comparison], options: argparse.Namespace) -> None:
    from drivelab.core.terminal import say, wide_console
    from drivelab.explore.comparison_lines import origin_lines, print_values

    def put(text: str, style: str = "") -> None:
        console.print(text, style=style, markup=False)

    console = wide_console()
    for comparison in comparisons:
        put(headline(comparison), "bold")
    basis, *sides = (comparisons[0].basis, *(comparison.comparison for comparison in comparisons))
    letters = (f"{letter}{number or ''}" for number in count() for letter in ascii_uppercase)
    is_short = max(map(len, (basis, *sides))) <= _LONGEST_NAME
    names = {side: side if is_short else next(letters) for side in (basis, *sides)}
    for side, name in names.items() if not is_short else ():
        put(f"{name}: {side}{' (basis)' if side == basis else ''}")
    for comparison in comparisons:
        if len(comparisons) > 1:
            put(names[comparison.comparison], "bold")
        for line, style in _condition_lines(comparison):
            put(line, style)
    exclusions = [row for comparison in comparisons for row in comparison.exclusions.itertuples()]
    excluded = [f"Left out: {row.recording}, {row.place}: {row.fault}, {row.words}" for row in exclusions]
    for line in dict.fromkeys(excluded):
        put(line, "yellow")
    print_values(comparisons, names)
    remarks = [note for comparison in comparisons for row in comparison.deltas["remarks"] for note in row]
    for note in dict.fromkeys(remarks):
        put(f"Note: {note}.", "dim")
    for comparison in comparisons if options.conditions else ():
        console.print()
        print_table(("condition", names[basis], names[comparison.comparison], ""), _conditions(comparison))
    if options.origin:
        say("\nWhere the values come from; 'drivelab verify RECORDING' checks a recording:", *origin_lines(comparisons))


def _condition_lines(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield lines and their style: what differs, the labels of the data, and what only one side has."""
    from drivelab.analysis.deltas.differences import not_recorded_words
    from drivelab.criteria.inert import CANNOT_ACT, reason

    unintended, unknown = comparison.unintended, len(comparison.not_recorded)
    inert = comparison.intended["kind"] == CANNOT_ACT
    yield f"Meant to differ: {_facets(comparison.intended[~inert])}", ""
    nothing = "nothing that was recorded" if unknown else "nothing"
    yield f"Differs too: {_facets(unintended, nothing)}", "bold yellow" if len(unintended) else ""
    for facet, rows in comparison.intended[inert].groupby("facet", sort=False):
        yield f"Differs, but cannot act: {_facets(rows)}: {reason(str(facet))}", ""
    if unknown:
        yield f"{not_recorded_words(unknown)} and may differ; --conditions lists {'it' if unknown == 1 else 'them'}", ""
    if comparison.labels:
        yield f"Labels: {', '.join(comparison.labels)}", "yellow"
    if comparison.measurements:
        sides = " with ".join(f"{name} of {side}" for side, name in comparison.measurements.items())
        yield f"Different measurements, compared cell by cell: {sides}", ""
    for side, values in comparison.alone.items():
        if values:
            cells = _first(tuple(dict.fromkeys(value.rpartition(" ")[0] for value in values)), "--json")
            yield f"Only in {side}: {counted(len(values), 'value')} of {cells}", ""


def _conditions(comparison: Comparison) -> Iterator[Sequence[str]]:
    """Yield a row for each condition that differs or is not recorded."""
    from drivelab.analysis.deltas.differences import STEPS
    from drivelab.criteria.inert import CANNOT_ACT

    groups = (("differs", comparison.unintended), ("meant to differ", comparison.intended),
              ("may differ", comparison.not_recorded))  # fmt: skip
    for words, differences in groups:
        for row in differences.drop_duplicates(["facet", "basis_value", "comparison_value"]).itertuples():
            facet = _STEPS if row.facet == STEPS else row.facet
            yield facet, row.basis_value, row.comparison_value, row.kind if row.kind == CANNOT_ACT else words


def _facets(differences: Any, nothing: str = "nothing") -> str:
    """List each facet once, with the values of both sides."""
    from drivelab.analysis.deltas.differences import STEPS

    texts = dict.fromkeys(
        _STEPS if row.facet == STEPS else f"{row.facet} ({row.basis_value} / {row.comparison_value})"
        for row in differences.itertuples()
    )
    return _first(tuple(texts), "--conditions") or nothing


def _first(items: Sequence[str], option: str) -> str:
    """List the first items; count the rest, which `option` shows."""
    rest = f", and {len(items) - _MOST} more, see {option}" if len(items) > _MOST else ""
    return f"{', '.join(items[:_MOST])}{rest}"
