"""The report of a study: its tables, recordings and figures become the view model, all content before the layout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.core.errors import UserError
from drivelab.core.files import write_atomic
from drivelab.figures.of_recording import OF_A_RECORDING, OVER_DRIVES, OVER_SIZES, figure_kinds, figures_of
from drivelab.plan.plan import Plan
from drivelab.recording.folders import STUDY_TABLES, tables_folder
from drivelab.report.banners import banners
from drivelab.report.document import MANY, TAILS, Banner, Fact, Figure, Page, Report, Table
from drivelab.report.downloads import downloads
from drivelab.report.first_screen import FirstScreen
from drivelab.report.header import fact_groups, run_head
from drivelab.report.headline import lead, terms
from drivelab.report.html import figure_file, picture, render
from drivelab.report.inputs import Inputs, Key, Row, each, main_question
from drivelab.report.numbers import MISSING, capital, is_missing, moment, percent, quantity, size, text
from drivelab.report.recording_facts import describe
from drivelab.report.sections.comparison import comparison_tables
from drivelab.report.sections.delta_tables import verdict_table
from drivelab.report.sections.determination import determination
from drivelab.report.sections.findings import findings_of, findings_table
from drivelab.report.sections.proof import fio_jobs
from drivelab.report.sections.replays import REPLAY_TABLES, fidelity_table, is_replay
from drivelab.report.sections.steps import SOAK_TABLES, STEP_TABLES
from drivelab.report.sections.values import VALUE_TABLES, all_values, matrices
from drivelab.tables import io

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
    matrices, *STEP_TABLES, *VALUE_TABLES, *SOAK_TABLES, fidelity_table, *REPLAY_TABLES,
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
    protocols = [f"{plan['protocol'].get('name')}: {plan['protocol']['source']}" for plan in plans
                 if not is_missing((plan.get("protocol") or {}).get("source"))]  # fmt: skip
    many = len(inputs.drives) >= MANY
    return Report(
        title=str(study.get("title") or study.get("name") or "Performance study"),
        study=str(study.get("name") or ""),
        report_date=moment(report_date),
        measured=f"measured from {moment(min(starts))}" if starts else "time of measurement not recorded",
        identities=() if many else tuple(_identity(inputs, drive) for drive in inputs.drives),
        sentence=" ".join(filter(None, (first.sentence(), (level := study.get("level")) and f"{capital(level)}."))),
        chart=first.chart,
        glance=first.glance(),
        lead=lead(inputs),
        verdict_terms=terms(inputs),
        verdict_table=verdict_table(inputs),
        findings=findings_table(inputs),
        banners=limits,
        pages=tuple(_page(inputs, key, limits, listed, report_date) for key in inputs.keys),
        comparison_tables=comparison_tables(inputs),
        comparison_figures=tuple(_compared(inputs, f) for f in listed if not f.get("drive") and not f.get("trace")),
        trace_figures=tuple(picture(figure) for figure in listed if figure.get("trace")),
        rse_limit=percent(study.get("rse_threshold_pct")),
        sources=tuple(dict.fromkeys([*protocols, *_METHODS])),
    )


_OF_TAILS = ("latency_distribution",)
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
    altered, notes = (
        tuple(dict.fromkeys(str(text) for plan in plans for text in plan.get(name) or ()))
        for name in ("reduced_why", "notes")
    )
    values, of_replay = all_values(inputs, key), all(map(is_replay, inputs.of_key("summary", key)))
    tables = [table for of_kind in _TABLES for table in of_kind(inputs, key)]
    title = next((plan["protocol"].get("title") for plan in plans if plan.get("protocol")), None)
    return Page(
        id=inputs.anchors[key],
        drive=key[0],
        measurement=key[1],
        title=str(title or ""),
        labels=tuple(banner.label for banner in limits if inputs.anchors[key] in banner.affected),
        head=run_head(plans, report_date, inputs.keys.index(key) + 1, len(inputs.keys)),
        groups=fact_groups(inputs, key),
        altered=altered,
        notes=notes,
        result=replace(values, collapsed=False) if values and of_replay else None,
        determination=determination(inputs, key),
        figures=tuple(
            picture(figure, several=len(plans) > 1)
            for figure in figures
            if (figure.get("drive"), figure.get("measurement")) == key
        ),
        tables=(*tables, values) if values and not of_replay else tuple(tables),
        findings=findings_of(inputs, key),
    )


_OF_RECORDINGS = (
    "cells", "steady_state", "replays", "replay_passes", "replay_operations", "replay_streams", "replay_mappings",
    "application_runs", "load_rates", "findings", "saturation",
)  # fmt: skip


_PLACE = ("drive", "measurement", "recording")


def write_report(study: Mapping[str, Any], output: Path) -> None:
    """Write the report of a study into its results folder, at `report/index.html`.

    `study` are the facts of `drivelab.campaign.study_facts.report_facts`.
    """
    results = output.parents[1]
    recordings = [results / "recordings" / name for name in study["recordings"]]
    frames = {name: io.read(results / f"tables/{name}.parquet", name) for name in STUDY_TABLES}
    with_bins = [folder for folder in recordings if "nines" in figure_kinds(Plan.read(folder / "plan.json").subject)]
    for name, folders in (*((name, recordings) for name in _OF_RECORDINGS), ("latency_bins", with_bins)):
        frames[name] = io.read([tables_folder(folder) / f"{name}.parquet" for folder in folders], name)
    plans = [describe(recording, study) for recording in recordings]
    figures = list(_figures(plans, study, results / "figures"))
    files = [path for folder in map(tables_folder, recordings) for path in sorted(folder.glob("*.parquet"))]
    files += sorted((results / "tables").glob("*.parquet")) + sorted((results / "tables/traces").glob("*/*.parquet"))
    report = replace(build(frames, study, plans, figures, datetime.now(UTC)), downloads=downloads(files))
    paths = dict(zip((plan["recording"] for plan in plans), recordings, strict=True))
    output.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(output, render(report, fio_jobs(report, paths)))


def _figures(plans: Sequence[Row], study: Mapping[str, Any], folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the figures of recordings, comparisons and traces as `build` takes them, in the order of their kinds."""
    places = (
        (OF_A_RECORDING, {plan["recording"]: {name: plan[name] for name in _PLACE} for plan in plans}),
        ((*OVER_DRIVES, *OVER_SIZES), {f"comparison/{name}": {"measurement": name} for name in study["comparisons"]}),
        (("trace",), {f"traces/{name}": {"measurement": name, "trace": name} for name in study["traces"]}),
    )
    for kinds, subjects in places:
        for (place, about), name in product(subjects.items(), figures_of(kinds)):
            if (path := folder / place / f"{name}.svg").exists():
                yield {**about, **figure_file(path)}
