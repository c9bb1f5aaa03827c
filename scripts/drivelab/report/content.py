"""The view model of the report: all of its content, decided before the layout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from drivelab.core.errors import UserError
from drivelab.replay.evaluation.metrics import SCORE_FORMULA
from drivelab.report.banners import banners
from drivelab.report.document import MANY, TAILS, Banner, Fact, Figure, Page, Report, Table
from drivelab.report.first_screen import FirstScreen
from drivelab.report.header import fact_groups, run_head
from drivelab.report.html import picture
from drivelab.report.inputs import Inputs, Key, each, main_question
from drivelab.report.numbers import MISSING, is_missing, moment, percent, quantity, size, text
from drivelab.report.sections.comparison import comparison_tables
from drivelab.report.sections.delta_tables import verdict_table
from drivelab.report.sections.demand_tables import demand_tables, point_table, recovery_tables
from drivelab.report.sections.determination import determination
from drivelab.report.sections.fidelity import fidelity_table
from drivelab.report.sections.findings import findings_of, findings_table
from drivelab.report.sections.load_tables import LOAD_TABLES
from drivelab.report.sections.replays import REPLAY_TABLES, result_table
from drivelab.report.sections.saturation import saturation_table, soaks_table
from drivelab.report.sections.values import all_values, best_runs_table, matrices, merit_table, nines_table
from drivelab.report.verdict import first_headlines_of_each, headlines, lead, terms

if TYPE_CHECKING:
    import pandas as pd

_METHODS = (
    "SNIA Solid State Storage Performance Test Specification 2.0: purge, preconditioning, steady state, report pages",
    "Solidigm, guide to testing client SSDs: median of an odd number of warm runs, relative standard error, delta",
)

_IDENTITY = (
    ("model", text, "{}"),
    ("capacity_bytes", size, "{}"),
    ("logical_block_bytes", size, "{} blocks"),
    ("over_provisioning_pct", lambda value: quantity(value, "%"), "{} over-provisioning"),
    ("firmware", text, "firmware {}"),
)
"""Columns of the table `drives` that identify a drive."""
_TABLES: tuple[Callable[[Inputs, Key], Iterable[Table]], ...] = (
    matrices, demand_tables, recovery_tables, *LOAD_TABLES, point_table, merit_table, best_runs_table, nines_table,
    saturation_table, soaks_table, fidelity_table, *REPLAY_TABLES, all_values,
)  # fmt: skip
"""Tables of the results on a page, in its order."""


def build(
    tables: Mapping[str, pd.DataFrame],
    study: Mapping[str, Any],
    plans: Sequence[Mapping[str, Any]],
    figures: Sequence[Mapping[str, Any]],
    report_date: Any,
) -> Report:
    """Build the report of a study.

    `tables` holds tables by name; a missing one is empty.
    `study` gives name, title, basis, rse_threshold_pct and confidence_pct. If a shipped trace replaced a capture, it
    also gives cannot_capture.
    `plans` has a mapping for each recording, see `drivelab.report.recording_facts.describe`. `figures` are mappings
    {drive, measurement, recording, name, title, caption, svg}. A figure without a drive belongs to the trace that it
    names, else to the comparison. The report shows missing values as "not recorded". Raises UserError for a figure that
    is not an SVG, or whose test is neither in the plans nor in the summary.
    """
    inputs = Inputs.of(tables, study, plans)
    known = {(plan["drive"], plan["measurement"]) for plan in plans} | set(inputs.keys)
    excluded = {plan["recording"] for plan in plans} - {plan["recording"] for plan in inputs.plans}
    listed = [figure for figure in figures if figure.get("recording") not in excluded]
    for figure in figures:
        if figure.get("drive") and (figure["drive"], figure["measurement"]) not in known:
            raise UserError(
                f"figure '{figure['name']}' shows {figure['drive']}/{figure['measurement']}, which the study did not "
                "measure; delete the figures folder and run the study again"
            )
    starts = [plan["started"] for plan in inputs.plans if not is_missing(plan.get("started"))]
    limits = banners(inputs)
    first = FirstScreen(inputs)
    many = len(inputs.drives) >= MANY  # the table of headline tests says it all
    shown, left_out = ((), ()) if many else first_headlines_of_each(headlines(inputs))
    return Report(
        title=str(study.get("title") or study.get("name") or "Performance study"),
        study=str(study.get("name") or ""),
        report_date=moment(report_date),
        measured=f"measured from {moment(min(starts))}" if starts else "time of measurement not recorded",
        identities=() if many else tuple(_identity(inputs, drive) for drive in inputs.drives),
        sentence=first.sentence(),
        chart=first.chart,
        glance=first.glance(),
        lead=lead(inputs),
        headlines=shown,
        headlines_left_out=left_out,
        verdict_terms=terms(inputs),
        verdict_table=verdict_table(inputs),
        findings=findings_table(inputs),
        banners=limits,
        pages=tuple(_page(inputs, key, limits, listed, report_date) for key in inputs.keys),
        comparison_tables=comparison_tables(inputs),
        comparison_figures=tuple(_compared(inputs, f) for f in listed if not f.get("drive") and not f.get("trace")),
        trace_figures=tuple(picture(figure) for figure in listed if figure.get("trace")),
        score_formula=SCORE_FORMULA,
        rse_limit=percent(study.get("rse_threshold_pct")),
        sources=tuple(dict.fromkeys([*_protocol_sources(plans), *_METHODS])),
    )


_OF_TAILS = ("nines_of_drives", "exceedance_of_drives", "tail")
"""Figures of tail latency."""


def _compared(inputs: Inputs, figure: Mapping[str, Any]) -> Figure:
    drawn = picture(figure)
    question = main_question(inputs, drawn.group) if drawn.group else ""
    return replace(drawn, question=TAILS if figure["name"] in _OF_TAILS else question)


def _identity(inputs: Inputs, drive: str) -> Fact:
    row = inputs.drive(drive)
    parts = [phrase.format(each(show, row[name])) for name, show, phrase in _IDENTITY if not is_missing(row.get(name))]
    basis = "the basis" if len(inputs.drives) > 1 and drive == inputs.study.get("basis") else ""
    return Fact(drive, ", ".join(filter(None, (*(parts or [MISSING]), basis))))


def _page(
    inputs: Inputs, key: Key, limits: tuple[Banner, ...], figures: list[Mapping[str, Any]], report_date: Any
) -> Page:
    plans = inputs.plans_of(key)
    title = next((plan["protocol"].get("title") for plan in plans if plan.get("protocol")), None)
    return Page(
        id=inputs.anchors[key],
        drive=key[0],
        measurement=key[1],
        title=str(title or ""),
        labels=tuple(banner.label for banner in limits if inputs.anchors[key] in banner.affected),
        head=run_head(plans, report_date, inputs.keys.index(key) + 1, len(inputs.keys)),
        groups=fact_groups(inputs, key),
        altered=_all(plans, "reduced_why"),
        notes=_all(plans, "notes"),
        result=result_table(inputs, key),
        determination=determination(inputs, key),
        figures=tuple(
            picture(figure, several=len(plans) > 1)
            for figure in figures
            if (figure.get("drive"), figure.get("measurement")) == key
        ),
        tables=tuple(table for tables in _TABLES for table in tables(inputs, key)),
        findings=findings_of(inputs, key),
    )


def _all(plans: Sequence[Mapping[str, Any]], name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(text) for plan in plans for text in plan.get(name) or ()))


def _protocol_sources(plans: Sequence[Mapping[str, Any]]) -> list[str]:
    protocols = [plan["protocol"] for plan in plans if plan.get("protocol")]
    return [f"{p.get('name')}: {p['source']}" for p in protocols if not is_missing(p.get("source"))]
