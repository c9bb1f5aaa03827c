"""The page of a quick look: the normal report of its recordings, with layers and warnings among its notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from drivelab.analysis.study_tables import study_tables
from drivelab.campaign.study_facts import analysis_facts, report_facts
from drivelab.collect.inventory import inventory_tables
from drivelab.core.files import write_atomic
from drivelab.figures.base.sheets import draw
from drivelab.figures.drawing import draw_recording
from drivelab.figures.of_recording import figures_of_recording
from drivelab.plan.plan import Plan
from drivelab.quick.session import Look, Place
from drivelab.report.content import build
from drivelab.report.html import figure_file, render
from drivelab.report.recording_facts import describe
from drivelab.report.sections.proof import fio_jobs


def write(look: Look, places: Sequence[Place], found: Sequence[str], output: Path) -> dict[str, tuple[str, ...]]:
    """Write the report of the recordings of one look; return the labels of its pages, what limits them, by drive."""
    paths = {plan.recording: plan.recording_path for plan in look.plans}
    recordings, planned = list(paths.values()), [look.campaign.by_recording[recording] for recording in paths]
    facts = {**analysis_facts(look.campaign, planned), "missing": [], "others": []}
    facts = report_facts(look.campaign, planned, facts, [], [])
    tables = {**inventory_tables(recordings, {}, []), **study_tables(recordings, facts)}
    for name in dict.fromkeys(name for place in places for name in place.tables):
        tables[name] = pd.concat([place.tables[name] for place in places])
    figures = list(_figures(look.plans, tables))
    del tables["latency_bins"]  # a report has only those of soaks until steady state
    plans = [describe(recording, facts) for recording in recordings]
    for plan, under in zip(plans, look.layers, strict=True):
        plan["notes"] += [*(f"{layer.words}: {' '.join(layer.cautions)}" for layer in under if layer.cautions), *found]
    report = build(tables, facts, plans, figures, datetime.now(UTC))
    output.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(output, render(report, fio_jobs(report, paths)))
    return {page.drive: page.labels for page in report.pages}


def _figures(plans: Sequence[Plan], tables: Mapping[str, pd.DataFrame]) -> Iterator[dict[str, Any]]:
    """Yield the figures of each recording, and of several places one of all."""
    with TemporaryDirectory() as folder:
        for plan in plans:
            draw_recording(plan.recording_path, Path(folder, plan.recording), png=False)
            paths = (Path(folder, plan.recording, f"{name}.svg") for name in figures_of_recording(plan.subject))
            about = {"drive": plan.drive, "measurement": plan.measurement, "recording": plan.recording}
            yield from ({**about, **figure_file(path)} for path in paths if path.exists())
        if len(plans) > 1:
            draw(["quick_look"], tables, ", ".join(plan.drive for plan in plans), Path(folder), png=False)
            yield {"measurement": plans[0].measurement, **figure_file(Path(folder, "quick_look.svg"))}
