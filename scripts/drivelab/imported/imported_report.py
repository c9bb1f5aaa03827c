"""Build the report pages of imported results, in the same way as those of a study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.analysis.deltas.differences import differences_table
from drivelab.collect.inventory import UNKNOWN
from drivelab.report.content import build
from drivelab.report.document import Report
from drivelab.report.html import figure_file

if TYPE_CHECKING:
    import pandas as pd

    from drivelab.imported.tables import Recording

NOT_RECORDED = "Imported: facts missing here were not recorded, by drivelab or by the source."


def report_of(
    tables: Mapping[str, pd.DataFrame],
    recordings: Sequence[Recording],
    source: Path,
    report_date: datetime,
    figures: Sequence[Mapping[str, Any]] = (),
) -> Report:
    """Return the report of an import; with several drives, the first is the basis of the deltas."""
    drives = list(dict.fromkeys(recording.drive for recording in recordings))
    study = {
        "name": f"imported-{recordings[0].kind}",
        "title": f"Imported results: {source.name}",
        "basis": drives[0] if len(drives) > 1 else None,
        "rse_threshold_pct": None,
    }
    compared = {}
    if len(drives) > 1:
        pairs = [(drives[0], other) for other in drives[1:]]
        differences = differences_table(tables["conditions"], pairs)
        deltas = deltas_table(tables["summary"], drives[0], differences=differences)
        compared = {"deltas": deltas, "differences": differences}
    return build(
        {**tables, **compared}, study, [plan_of(recording, source) for recording in recordings], figures, report_date
    )


def plan_of(recording: Recording, source: Path) -> dict[str, Any]:
    """Return the facts of a recording for a page's header block; missing ones read "not recorded"."""
    test = recording.facts.get("test", {})
    started, finished = _span(recording)
    demand = {
        column: test.get(name) or ", ".join(map(str, sorted({row[column] for row in recording.cells}))) or None
        for name, column in (("threads", "threads"), ("queue depth", "queue_depth"))
    }
    return {
        "recording": recording.name,
        "path": str(source),
        "drive": recording.drive,
        "measurement": recording.measurement,
        "run": 1,
        "protocol": {"name": recording.protocol, "title": recording.title, "source": source.name},
        **demand,
        "write_cache": test.get("write cache"),
        "reduced": False,
        "virtual": False,
        "clock": "wall",
        "started": started,
        "finished": finished,
        "engine": test.get("engine"),
        "notes": [NOT_RECORDED, *recording.notes],
    }


def _span(recording: Recording) -> tuple[str | None, str | None]:
    """Return the start of the first cell and the end of the last, as far as known."""
    if recording.to_the_day or not recording.cells:
        date = recording.facts.get("time", {}).get("date")
        return (None, None) if date is None else (f"{date}, time {UNKNOWN}", f"{date}, time {UNKNOWN}")
    ends = [row["started"] + timedelta(seconds=row["runtime_s"]) for row in recording.cells]
    return min(row["started"] for row in recording.cells).isoformat(), max(ends).isoformat()


_FEWEST_ROUNDS = 3


def draw_figures(
    tables: Mapping[str, pd.DataFrame], recordings: Sequence[Recording], folder: Path
) -> list[dict[str, Any]]:
    """Draw each figure as `folder`/RECORDING/NAME.svg (and png); return them for the report."""
    from drivelab.figures.base.sheets import draw  # imports matplotlib, which only a report needs

    figures: list[dict[str, Any]] = []
    for recording in recordings:
        own = {name: tables[name][tables[name]["recording"] == recording.name] for name in ("cells", "steady_state")}
        own["drives"] = tables["drives"][tables["drives"]["drive"] == recording.drive]
        key = {"drive": recording.drive, "measurement": recording.measurement, "recording": recording.name}
        names, target = list(figure_names(own)), folder / recording.name
        if names:
            draw(names, own, f"{recording.drive}, {recording.measurement}", target)
        figures += [{**key, **figure_file(target / f"{name}.svg")} for name in names]
    return figures


def figure_names(tables: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """Yield the figures that the tables of one recording allow: cells, steady_state, drives."""
    cells, windows = tables["cells"], tables["steady_state"]
    loops, soaks = (cells[cells["kind"] == kind] for kind in ("loop", "soak"))
    if len(loops) and len(windows):
        yield "convergence_mixes" if windows["metric"].iloc[0] == "bandwidth_mib_s" else "convergence"
        yield "window"
        yield "measurement_2d"
    elif len(loops):
        if loops["round"].max() >= _FEWEST_ROUNDS:
            yield "repeats"
        if loops.groupby(["workload", "threads"])["queue_depth"].nunique().max() > 1:
            yield "depth_ramp"
    if len(soaks):
        yield "saturation_time"
        if tables["drives"]["capacity_bytes"].notna().all():
            yield "saturation_bytes"
