"""The report pages of imported results: the same as a study's, from the same tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.analysis.deltas import deltas_table
from drivelab.analysis.differences import differences_table
from drivelab.report.model import build
from drivelab.report.view import Report
from drivelab.tables.inventory import UNKNOWN

if TYPE_CHECKING:
    import pandas as pd

    from drivelab.imported.tables import Recording

NOT_RECORDED = "Imported: what is not said here was not recorded, by drivelab or by the origin."


def report_of(
    tables: Mapping[str, pd.DataFrame],
    recordings: Sequence[Recording],
    source: Path,
    report_date: datetime,
    figures: Sequence[Mapping[str, Any]] = (),
) -> Report:
    """The view of the report of an import; of several drives the first is the basis of the deltas."""
    drives = list(dict.fromkeys(one.drive for one in recordings))
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
    return build({**tables, **compared}, study, [plan_of(one, source) for one in recordings], figures, report_date)


def plan_of(one: Recording, source: Path) -> dict[str, Any]:
    """What the header block of a page says of a recording; what is left out reads "not recorded"."""
    test = one.facts.get("test", {})
    started, finished = _span(one)
    threads, depth = test.get("threads"), test.get("queue depth")
    return {
        "recording": one.name,
        "path": str(source),
        "drive": one.drive,
        "measurement": one.measurement,
        "run": 1,
        "protocol": {"name": one.protocol, "title": one.title, "source": source.name},
        "class": {"threads": threads, "queue_depth": depth, "write_cache": test.get("write cache")},
        "reduced": False,
        "virtual": one.virtual,
        "clock": one.clock,
        "started": started,
        "finished": finished,
        "engine": test.get("engine"),
        "notes": [NOT_RECORDED, *one.notes],
    }


def _span(one: Recording) -> tuple[str | None, str | None]:
    """When the first cell began and the last one ended, as far as that is known."""
    if one.to_the_day or not one.cells:
        date = one.facts.get("time", {}).get("date")
        return (None, None) if date is None else (f"{date}, time {UNKNOWN}", f"{date}, time {UNKNOWN}")
    ends = [row["started"] + timedelta(seconds=row["runtime_s"]) for row in one.cells]
    return min(row["started"] for row in one.cells).isoformat(), max(ends).isoformat()
