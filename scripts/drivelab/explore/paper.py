"""Write figures and tables of a study for a paper, with captions that name the labels and the source of the data."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

import drivelab
from drivelab.analysis.limits import limited
from drivelab.core.errors import UserError
from drivelab.core.grouping import grouped
from drivelab.explore.paper_tables import TABLE_FORMATS, PaperTable, comparison_table, values_table
from drivelab.explore.redrawing import COMPARISON, places, redraw, subject_of
from drivelab.figures.registry import FIGURES
from drivelab.recording.folders import owner
from drivelab.tables import io

CAPTIONS = "captions.md"
_KEY = re.compile(r"/[0-9a-f]{12}-run(\d+)/")
"""The part of a figure's place that names the recording."""


@dataclass(frozen=True)
class _Study:
    """What captions say of a study."""

    results: Path
    name: str
    summary: pd.DataFrame
    conditions: pd.DataFrame
    digest: str

    def credits(self, drive: str | None = None, measurement: str | None = None) -> str:
        """Return the end of a caption: the labels of a drive and measurement, or of all, and the provenance."""
        rows = self.summary
        rows = rows if measurement is None else rows[rows["measurement"] == measurement]
        rows = rows if drive in (None, COMPARISON) else rows[rows["drive"] == drive]
        labels = ", ".join(limited(rows, self.conditions))
        recordings = len(set(self.summary["recordings"].explode()))
        return (
            f"{labels and f'Labels: {labels}. '}Data: study {self.name}, {recordings} recordings, values "
            f"SHA-256 {self.digest[:12]}, drivelab {drivelab.__version__}."
        )


def write_for_paper(
    results: Path,
    output: Path,
    figures: str | None,
    tables: str | None,
    watch: Callable[[int, int], None] = lambda done, of: None,
) -> list[Path]:
    """Write figures (pdf, svg, png) and tables (csv, latex) below `output`, and their CAPTIONS; return the files.

    Of each drive and measurement the figures of the first run are written. Raises UserError for results without
    figures or values.
    """
    study = _study(results)
    captions: dict[Path, str] = {}
    if figures is not None:
        from drivelab.figures.base.paper import fitting, save  # imports matplotlib, which is slow

        chosen = _of_first_runs(places(results))
        (output / "figures").mkdir(parents=True, exist_ok=True)
        for number, place in enumerate(chosen):
            watch(number, len(chosen))
            figure, width_in = fitting(lambda place=place: redraw(results, place))  # type: ignore[misc]
            path = output / f"figures/{place.replace('/', '-')}.{figures}"
            save(figure, path)
            captions[path] = f"{_caption(study, place)} Width: {width_in:g} inches."
    if tables is not None:
        ending, write = TABLE_FORMATS[tables]
        (output / "tables").mkdir(parents=True, exist_ok=True)
        for table in _tables(study):
            path = output / f"tables/{table.name}{ending}"
            path.write_text(write(table), encoding="utf-8")
            captions[path] = table.caption
    lines = [f"## {path.relative_to(output)}\n\n{caption}\n" for path, caption in captions.items()]
    (output / CAPTIONS).write_text("\n".join([f"# Figures and tables of {study.name}\n", *lines]), encoding="utf-8")
    return [*captions, output / CAPTIONS]


def _study(results: Path) -> _Study:
    path, conditions = results / "tables/summary.parquet", results / "tables/conditions.parquet"
    if not path.exists():
        raise UserError(f"{path}: does not exist, so there are no values for a paper; run the study first")
    return _Study(
        results, owner(results) or results.name, io.read([path], "summary"),
        io.read([conditions] if conditions.exists() else [], "conditions"),
        hashlib.sha256(path.read_bytes()).hexdigest(),
    )  # fmt: skip


def _of_first_runs(found: Sequence[str]) -> list[str]:
    """Return the places of figures of the first run of each drive and measurement."""
    runs = grouped(found, lambda place: _KEY.sub("/", place))
    first = {min(places, key=lambda place: int("".join(_KEY.findall(place)) or 0)) for places in runs.values()}
    return [place for place in found if place in first]


def _caption(study: _Study, place: str) -> str:
    *parts, name = place.split("/")
    kind = FIGURES[name]
    return f"{kind.title}: {subject_of(parts)}. {kind.caption} {study.credits(*parts[:2])}"


def _tables(study: _Study) -> list[PaperTable]:
    caption = f"Measured values, with 95 % confidence intervals of the mean of the recordings. {study.credits()}"
    tables = [values_table(study.summary, caption)]
    path = study.results / "tables/deltas.parquet"
    deltas = io.read([path] if path.exists() else [], "deltas")
    if len(deltas):
        margin = float(deltas["margin_pct"].iloc[0])
        caption = (
            f"Differences to {deltas['basis'].iloc[0]}; positive is better. p-values and intervals are adjusted for "
            f"all comparisons; the margin is {margin:g} %. {study.credits()}"
        )
        tables.append(comparison_table(deltas, caption))
    return tables
