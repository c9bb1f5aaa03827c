"""The page of a quick look: the normal report of its recordings, with layers and warnings among its notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from drivelab.analysis.study_tables import study_tables
from drivelab.campaign.planning import Campaign
from drivelab.collect.inventory import inventory_tables
from drivelab.core.files import write_atomic
from drivelab.figures.base.sheets import draw
from drivelab.figures.drawing import draw_recording
from drivelab.figures.registry import FIGURES
from drivelab.quick.session import Place
from drivelab.report.content import build
from drivelab.report.html import figure_file, render
from drivelab.report.recording_facts import describe
from drivelab.report.sections.proof import fio_jobs
from drivelab.workflow.layout import Layout

_OVERVIEW = "quick_look"


def write(places: Sequence[Place], campaign: Campaign, found: Sequence[str], output: Path) -> None:
    """Write the report of the recordings of one look; the first place is the basis of a comparison."""
    layout, names = Layout(campaign), [place.plan.drive for place in places]
    paths = {place.plan.recording: place.plan.recording_path for place in places}
    pairs = [(names[0], name) for name in names[1:]]
    chosen = {
        "recordings": list(paths),
        "drives": names,
        "basis": names[0],
        "pairs": pairs,
        "missing": [],
        "others": [],
    }
    recordings, facts = list(paths.values()), {**layout.report_facts(), **chosen}
    tables = {**inventory_tables(recordings, {}, []), **study_tables(recordings, {**layout.analysis_facts, **chosen})}
    for name in dict.fromkeys(name for place in places for name in place.tables):
        tables[name] = pd.concat([place.tables[name] for place in places])
    plans = []
    for place, recording in zip(places, recordings, strict=True):
        plan = describe(recording, facts)
        plans.append({**plan, "notes": [*plan["notes"], *_notes(place), *found]})
    figures = list(_figures(places, recordings, tables))
    del tables["latency_bins"]  # a report has only those of soaks until steady state
    report = build(tables, facts, plans, figures, datetime.now(UTC))
    output.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(output, render(report, fio_jobs(report, paths)))


def _notes(place: Place) -> Iterator[str]:
    yield "Unconditioned: the drive as it was, neither purged nor preconditioned."
    for layer in place.layers:
        yield " ".join((f"Between the numbers and the drive: {layer.words}.", *layer.cautions))


def _figures(
    places: Sequence[Place], recordings: Sequence[Path], tables: dict[str, pd.DataFrame]
) -> Iterator[dict[str, Any]]:
    """Yield the figures of each recording, and of several places one of all."""
    with TemporaryDirectory() as folder:
        for number, (place, recording) in enumerate(zip(places, recordings, strict=True)):
            own = Path(folder, str(number))
            draw_recording(recording, own, png=False)
            for path in sorted(own.glob("*.svg"), key=lambda path: list(FIGURES).index(path.stem)):
                yield {
                    "drive": place.plan.drive,
                    "measurement": place.plan.measurement,
                    "recording": place.plan.recording,
                    **figure_file(path),
                }
        if len(places) > 1:
            draw([_OVERVIEW], tables, ", ".join(place.path for place in places), Path(folder), png=False)
            yield {"measurement": places[0].plan.measurement, **figure_file(Path(folder, f"{_OVERVIEW}.svg"))}
