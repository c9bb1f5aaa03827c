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
from drivelab.quick.subjects import HEADER, line_of, unique
from drivelab.recording.folders import is_recorded

RESULTS = Path("results/quick")
STUDY, SHEET = RESULTS / "study.yaml", RESULTS / "drives.tsv"
USUAL_S = 300.0
"""Longest time of a look by the unchanged protocols quick and quick-reads, about."""
_USUAL_CELL_S = {"quick": 2.0, "quick-reads": 5.0}
_LEAST_CELL_S, _SUSTAINED_S, _LEAST_SUSTAINED_S, _IDLE_S, _LEAST_IDLE_S = 0.5, 60.0, 5.0, 15.0, 5.0
_HEAD = "# Written by 'drivelab quick'. 'drivelab run' reports all looks at these places with these settings.\n"


@dataclass(frozen=True)
class Request:
    """One subject of a look, and how to measure it."""

    row: SheetRow
    time_s: float
    range_bytes: int | None
    """Size of the part to use; None for that of the protocol."""

    @property
    def protocol(self) -> str:
        return "quick-reads" if self.row.kind == READ_ONLY.name else "quick"

    @property
    def settings(self) -> dict[str, Any]:
        """Return the changes to the protocol; empty for the usual time and size."""
        factor = self.time_s / USUAL_S
        changed: dict[str, Any] = {}
        if factor != 1:
            cell_s = max(_LEAST_CELL_S, round(_USUAL_CELL_S[self.protocol] * factor, 1))
            changed["loop"] = {"runtime": f"{cell_s * 1000:.0f}ms"}
            if self.protocol == "quick":
                changed["idle"] = {"time": f"{max(_LEAST_IDLE_S, _IDLE_S * factor):.0f}s"}
                changed["soak"] = {"until": {"time": f"{max(_LEAST_SUSTAINED_S, _SUSTAINED_S * factor):.0f}s"}}
        if self.range_bytes is not None:
            changed["class"] = {"client": {"active_range": format_size(self.range_bytes)}}
        return changed

    @property
    def measurement(self) -> str:
        """Return a name that is the same for all looks with the same settings."""
        time = "" if self.time_s == USUAL_S else f"-{self.time_s:g}s"
        size = "" if self.range_bytes is None else f"-{format_size(self.range_bytes).lower()}"
        return f"{self.protocol}{time}{size}".replace(".", "-")


def planned(requests: Sequence[Request]) -> tuple[Campaign, list[Plan]]:
    """Write the study of this look and the sheet of all looks; return its campaign and the plans, as in `requests`."""
    rows = _known()
    names: list[str] = []
    measurements: dict[str, dict[str, Any]] = {}
    for request in requests:
        row = unique(request.row, rows.values())
        rows = {row.drive: row, **{other.drive: other for other in rows.values() if not _replaces(row, other)}}
        names.append(row.drive)
        entry = {"protocol": request.protocol, "name": request.measurement, "set": request.settings, "drives": []}
        measurements.setdefault(request.measurement, entry)["drives"].append(row.drive)
    body = {
        "name": "quick",
        "title": "Quick looks",
        "results": str(RESULTS),
        "drives_sheet": str(SHEET),
        "drives": names,
        "taint": {"remeasure": 0},  # a quick look keeps its time
        "basis": names[0],
        "measurements": list(measurements.values()),
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    write_atomic(SHEET, "\n".join((HEADER, *map(line_of, rows.values()), "")))
    runs = [
        {"measurements": [planned.plan.measurement], "drives": [planned.plan.drive], "runs": number}
        for planned in _loaded(body).plans
        if (number := _next_run(planned.plan)) > 1
    ]
    campaign = _loaded({**body, "include": runs})
    return campaign, sorted(campaign.to_do, key=lambda plan: names.index(plan.drive))


def _loaded(body: Mapping[str, Any]) -> Campaign:
    write_atomic(STUDY, _HEAD + json.dumps(body, indent=1, ensure_ascii=False) + "\n")  # JSON is YAML
    return Campaign.load(STUDY)


def _next_run(plan: Plan) -> int:
    """Return the first run of a plan that is not recorded."""
    runs = (Plan(plan.subject, {**plan.context, "run": run}) for run in count(1))
    return next(plan.run for plan in runs if not is_recorded(plan))


def _replaces(row: SheetRow, other: SheetRow) -> bool:
    """Return whether another row leaves the sheet: a device has one; folders share the identifier of a file system."""
    return FILE.name not in (row.kind, other.kind) and (row.device == other.device or row.serial == other.serial)


def _known() -> dict[str, SheetRow]:
    """Return the rows of all looks, the latest first; none before the first look."""
    try:
        return load_sheet(SHEET)
    except UserError:
        return {}


def known_size(row: SheetRow) -> int | None:
    """Return the size of the file in the latest quick look at the folder of a row; None without one."""
    known = _known().values()
    return next((other.size_bytes for other in known if (other.device, other.serial) == (row.device, row.serial)), None)
