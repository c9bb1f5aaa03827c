"""Collect the files of a study's report: tables, recordings and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drivelab.core.files import write_atomic
from drivelab.figures.of_recording import OF_A_RECORDING, OVER_DRIVES, OVER_SIZES, figure_kinds, figures_of
from drivelab.plan.plan import Plan
from drivelab.recording.folders import STUDY_TABLES, tables_folder
from drivelab.report.content import build
from drivelab.report.downloads import downloads
from drivelab.report.html import figure_file, render
from drivelab.report.recording_facts import describe
from drivelab.report.sections.proof import fio_jobs
from drivelab.tables import io

_OF_RECORDINGS = (
    "cells", "steady_state", "replays", "replay_passes", "replay_operations", "replay_streams", "replay_mappings",
    "application_runs", "load_rates", "findings", "saturation",
)  # fmt: skip


def write_report(study: Mapping[str, Any], output: Path) -> None:
    """Write the report of a study into its results folder, at `report/index.html`; `study` is `Layout.report_facts`."""
    results = output.parents[1]
    recordings = [results / "recordings" / name for name in study["recordings"]]
    frames = {name: io.read(results / f"tables/{name}.parquet", name) for name in STUDY_TABLES}
    with_bins = [folder for folder in recordings if "nines" in figure_kinds(Plan.read(folder / "plan.json").subject)]
    for name, folders in (*((name, recordings) for name in _OF_RECORDINGS), ("latency_bins", with_bins)):
        frames[name] = io.read([tables_folder(folder) / f"{name}.parquet" for folder in folders], name)
    plans = [describe(recording, study) for recording in recordings]
    figures = [_figure(path) for path in _figure_files(recordings, study, results / "figures")]
    files = [path for folder in map(tables_folder, recordings) for path in sorted(folder.glob("*.parquet"))]
    files += sorted((results / "tables").glob("*.parquet")) + sorted((results / "tables/traces").glob("*/*.parquet"))
    report = replace(build(frames, study, plans, figures, datetime.now(UTC)), downloads=downloads(files))
    paths = dict(zip((plan["recording"] for plan in plans), recordings, strict=True))
    output.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(output, render(report, fio_jobs(report, paths)))


def _figure_files(recordings: Sequence[Path], study: Mapping[str, Any], figures: Path) -> Iterator[Path]:
    """Yield the SVG files of recordings, comparisons and traces, in the order of their kinds."""
    places = (
        (OF_A_RECORDING, [Path(*recording.parts[-3:]) for recording in recordings]),
        ((*OVER_DRIVES, *OVER_SIZES), [Path("comparison", name) for name in study["comparisons"]]),
        (("trace",), [Path("traces", name) for name in study["traces"]]),
    )
    for kinds, folders in places:
        paths = (figures / folder / f"{name}.svg" for folder in folders for name in figures_of(kinds))
        yield from (path for path in paths if path.exists())


def _figure(path: Path) -> dict[str, Any]:
    """Return the figure of a path below figures/.

    Paths are DRIVE/MEASUREMENT/KEY/NAME.svg, comparison/MEASUREMENT/NAME.svg and traces/TRACE/NAME.svg.
    """
    parts = path.parts[path.parts.index("figures") + 1 :]
    of_drive = len(parts) == 4
    return {
        "drive": parts[0] if of_drive else None,
        "measurement": parts[1],
        "trace": parts[1] if not of_drive and parts[0] == "traces" else None,
        "recording": "/".join(parts[:3]) if of_drive else None,
        **figure_file(path),
    }
