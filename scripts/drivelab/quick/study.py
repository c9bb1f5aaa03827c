"""The study that all quick looks of a project belong to: results/quick, as other commands know it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
LEAST_AGREEING_S = 180.0
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
            if self.time_s < LEAST_AGREEING_S:
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


Entries = dict[str, dict[str, Any]]
"""The measurements of the study file by name, the latest first."""


def planned(requests: Sequence[Request]) -> tuple[Campaign, list[Plan]]:
    """Enter the looks in the study, the latest first; return its campaign and the plans to measure, as in `requests`.

    Looks of earlier versions of a protocol stay in the results folder, but not in the study.
    """
    rows, entries = _known()
    new: list[tuple[str, str]] = []
    for request in requests:
        row = unique(request.row, rows.values())
        rows[row.drive] = row
        name, settings = request.measurement, request.settings
        known = entries.pop(name, {"drives": []})
        entry = {
            "protocol": request.protocol,
            "name": name,
            "drives": list(dict.fromkeys([row.drive, *known["drives"]])),
        }
        entries = {name: {**entry, **({"set": settings} if settings else {})}, **entries}
        new.append((name, row.drive))
    first = _written(
        rows, entries, dict.fromkeys(((name, drive) for name in entries for drive in entries[name]["drives"]), 1)
    )
    plans = {(planned.plan.measurement, planned.plan.drive): planned.plan for planned in first.wanted}
    runs = {place: count for place, plan in plans.items() if (count := _recorded(plan) + (place in new))}
    campaign = _written(rows, entries, runs)
    by_place = {(plan.measurement, plan.drive): plan for plan in campaign.to_do}
    return campaign, [by_place[place] for place in new]


def _recorded(plan: Plan) -> int:
    """Return the number of runs of a plan that are recorded, up to the first that is missing."""
    runs = (Plan(plan.subject, {**plan.context, "run": run}) for run in count(1))
    return next(plan.run for plan in runs if not is_recorded(plan)) - 1


def _known() -> tuple[dict[str, SheetRow], Entries]:
    """Return the rows and measurements so far; none if the study is missing or refers to what no longer exists."""
    if not STUDY.exists():
        return {}, {}
    try:
        Campaign.load(STUDY)
        return load_sheet(SHEET), {entry["name"]: entry for entry in load_yaml(STUDY)["measurements"]}
    except UserError:
        return {}, {}


def _written(rows: Mapping[str, SheetRow], entries: Entries, runs: Mapping[tuple[str, str], int]) -> Campaign:
    """Write sheet and study with the number of looks by measurement and drive, and load them."""
    measurements = [
        {**entry, "drives": [drive for drive in entry["drives"] if (name, drive) in runs]}
        for name, entry in entries.items()
        if any((name, drive) in runs for drive in entry["drives"])
    ]
    drives = list(dict.fromkeys(drive for entry in measurements for drive in entry["drives"]))
    body = {
        "name": "quick",
        "title": "Quick looks",
        "results": str(RESULTS),
        "drives_sheet": str(SHEET),
        "drives": drives,
        "taint": {"remeasure": 0},  # a quick look keeps its time
        "basis": max(drives, key=lambda drive: sum(len(e["drives"]) for e in measurements if drive in e["drives"])),
        "measurements": measurements,
        "include": [
            {"measurements": [name], "drives": [drive], "runs": number}
            for (name, drive), number in runs.items() if number > 1
        ],
    }  # fmt: skip
    RESULTS.mkdir(parents=True, exist_ok=True)
    write_atomic(SHEET, "\n".join((HEADER, *(line_of(rows[drive]) for drive in drives), "")))
    write_atomic(STUDY, _HEAD + json.dumps(body, indent=1, ensure_ascii=False) + "\n")  # JSON is YAML
    return Campaign.load(STUDY)
