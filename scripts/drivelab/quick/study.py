"""The study that all quick looks of a project belong to: results/quick, as other commands know it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from drivelab.campaign.planning import Campaign
from drivelab.core.errors import UserError
from drivelab.core.files import write_atomic
from drivelab.core.units import format_size
from drivelab.plan.drive_sheet import SheetRow, load_sheet
from drivelab.plan.plan import Plan
from drivelab.plan.subject_kinds import FILE, READ_ONLY
from drivelab.plan.yaml_file import load_yaml
from drivelab.quick.subjects import HEADER, USUAL_BYTES, line_of, unique
from drivelab.recording.folders import is_recorded

RESULTS = Path("results/quick")
STUDY, SHEET = RESULTS / "study.yaml", RESULTS / "drives.tsv"
USUAL_S = 300.0
"""Longest time of a look by the unchanged protocols quick and quick-reads, about."""
_LEAST_AGREEING_S = 180.0
"""Below, there is time for three rounds only."""
_USUAL = {"quick": ("loop", 2.0), "quick-reads": ("loop", 5.0)}
_LEAST_CELL_S, _SUSTAINED_S, _LEAST_SUSTAINED_S = 0.5, 60.0, 5.0
SMALL_FILE_BYTES = 4 << 30
"""Ours: so much fits into the SLC cache of most drives."""
_IDLE_S, _LEAST_IDLE_S = 15.0, 5.0
FILL_SHARE = 0.15
"""Share of the time that writing the file may take."""
_HEAD = "# Written by 'drivelab quick', which adds each look. 'drivelab run' makes the full report of all looks.\n"


@dataclass(frozen=True)
class Request:
    """One subject of a look, and how to measure it."""

    row: SheetRow
    capacity_bytes: int
    time_s: float
    size_bytes: int | None
    """Size that the user gave; None for the usual one."""

    @property
    def protocol(self) -> str:
        return "quick-reads" if self.row.kind == READ_ONLY.name else "quick"

    @property
    def has_small_file(self) -> bool:
        """Return whether the test is on a file that caches may hold."""
        return self.row.kind == FILE.name and self.capacity_bytes < SMALL_FILE_BYTES

    @property
    def settings(self) -> dict[str, Any]:
        """Return the changes to the protocol; empty for the usual time and size."""
        factor = self.time_s / USUAL_S
        changed: dict[str, Any] = {}
        if factor != 1:
            cell_s = max(_LEAST_CELL_S, round(_USUAL[self.protocol][1] * factor, 1))
            changed["loop"] = {"runtime": f"{cell_s * 1000:.0f}ms"}
            if self.time_s < _LEAST_AGREEING_S:
                changed["loop"]["until"] = {"rounds": 3}
            if self.protocol == "quick":
                changed["idle"] = {"time": f"{max(_LEAST_IDLE_S, _IDLE_S * factor):.0f}s"}
                changed["soak"] = {"until": {"time": f"{max(_LEAST_SUSTAINED_S, _SUSTAINED_S * factor):.0f}s"}}
        if self.size_bytes or (self.protocol == "quick" and self.capacity_bytes < USUAL_BYTES):
            size = min(self.size_bytes or self.capacity_bytes, self.capacity_bytes)
            range_text = "100%" if size == self.capacity_bytes else format_size(size)
            changed["class"] = {"client": {"active_range": range_text}}
        return changed

    @property
    def measurement(self) -> str:
        """Return a name that is the same for all looks with the same settings."""
        time = "" if self.time_s == USUAL_S else f"-{self.time_s:g}s"
        size = ""
        if "class" in self.settings:
            size = f"-{format_size(min(self.size_bytes or self.capacity_bytes, self.capacity_bytes)).lower()}"
        return f"{self.protocol}{time}{size}".replace(".", "-")


@dataclass(frozen=True)
class Measurement:
    """An entry of the study: one protocol with its settings, on some subjects."""

    name: str
    protocol: str
    settings: Mapping[str, Any]
    runs: Mapping[str, int]
    """Looks by the name of the subject."""


def planned(requests: Sequence[Request]) -> tuple[Campaign, list[Plan]]:
    """Enter the looks in the study, the latest first; return its campaign and the plans to measure, as in `requests`.

    Looks of earlier versions of a protocol stay in the results folder, but not in the study.
    """
    rows, measurements = _known()
    new: list[tuple[str, str]] = []
    for request in requests:
        row = unique(request.row, rows.values())
        rows[row.drive] = row
        entry = measurements.get(request.measurement)
        runs = {} if entry is None else entry.runs
        latest = Measurement(request.measurement, request.protocol, request.settings, {row.drive: 1, **runs})
        others = {name: known for name, known in measurements.items() if name != latest.name}
        measurements = {latest.name: latest, **others}
        new.append((request.measurement, row.drive))
    first = _written(rows, [replace(entry, runs=dict.fromkeys(entry.runs, 1)) for entry in measurements.values()])
    plans = {(planned.plan.measurement, planned.plan.drive): planned.plan for planned in first.wanted}
    counted = {place: _recorded(plan) + (place in new) for place, plan in plans.items()}
    kept = [
        replace(entry, runs={drive: counted[name, drive] for drive in entry.runs if counted[name, drive]})
        for name, entry in measurements.items()
    ]
    campaign = _written(rows, [entry for entry in kept if entry.runs])
    by_place = {(plan.measurement, plan.drive): plan for plan in campaign.to_do}
    return campaign, [by_place[place] for place in new]


def _recorded(plan: Plan) -> int:
    """Return the number of runs of a plan that are recorded, up to the first that is missing."""
    runs = (Plan(plan.subject, {**plan.context, "run": run}) for run in count(1))
    return next(plan.run for plan in runs if not is_recorded(plan)) - 1


def _known() -> tuple[dict[str, SheetRow], dict[str, Measurement]]:
    """Return the rows and measurements so far; none if the study is missing or refers to what no longer exists."""
    if not STUDY.exists():
        return {}, {}
    try:
        Campaign.load(STUDY)
        rows, body = load_sheet(SHEET), load_yaml(STUDY)
    except UserError:
        return {}, {}
    runs: dict[str, dict[str, int]] = {}
    for entry in body["include"]:
        runs.setdefault(entry["measurements"][0], {})[entry["drives"][0]] = entry["runs"]
    measurements = {
        entry["name"]: Measurement(
            entry["name"], entry["protocol"], entry.get("set", {}),
            {drive: runs.get(entry["name"], {}).get(drive, 1) for drive in entry["drives"]},
        )
        for entry in body["measurements"]
    }  # fmt: skip
    return rows, measurements


def _written(rows: Mapping[str, SheetRow], measurements: Iterable[Measurement]) -> Campaign:
    """Write sheet and study, and load them."""
    measurements = list(measurements)
    drives = list(dict.fromkeys(drive for entry in measurements for drive in entry.runs))
    body = {
        "name": "quick",
        "title": "Quick looks",
        "results": str(RESULTS),
        "drives_sheet": str(SHEET),
        "drives": drives,
        "taint": {"remeasure": 0},  # a quick look keeps its time
        "basis": max(drives, key=lambda drive: sum(len(entry.runs) for entry in measurements if drive in entry.runs)),
        "measurements": [
            {"protocol": entry.protocol, "name": entry.name, "drives": list(entry.runs),
             **({"set": entry.settings} if entry.settings else {})}
            for entry in measurements
        ],
        "include": [
            {"measurements": [entry.name], "drives": [drive], "runs": runs}
            for entry in measurements for drive, runs in entry.runs.items() if runs > 1
        ],
    }  # fmt: skip
    RESULTS.mkdir(parents=True, exist_ok=True)
    write_atomic(SHEET, "\n".join((HEADER, *(line_of(rows[drive]) for drive in drives), "")))
    write_atomic(STUDY, _HEAD + json.dumps(body, indent=1, ensure_ascii=False) + "\n")  # JSON is YAML
    return Campaign.load(STUDY)
