"""Collect the files of a study's report: tables, recordings and figures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drivelab.analysis.taint import digest
from drivelab.figures.registry import ALL
from drivelab.host.settings import deviations
from drivelab.plan.plan import Plan
from drivelab.recording.checksums import checksummed
from drivelab.recording.writer import read_journal
from drivelab.report import procedure
from drivelab.report.downloads import downloads
from drivelab.report.evidence import fio_jobs
from drivelab.report.html import render
from drivelab.report.model import build
from drivelab.report.view import Report
from drivelab.tables import io
from drivelab.tables.settings import settings


def write_report(
    tables: Mapping[str, Any],
    recordings: Iterable[Path],
    figures: Iterable[Path],
    study: Mapping[str, Any],
    every_table: Iterable[Path],
    output: Path,
) -> None:
    """Write the report of a study.

    `tables` holds paths by table name; `study` is `Layout.report_facts`; `every_table` lists the files of all
    downloadable tables.
    """
    report, paths = gathered(tables, recordings, figures, study)
    report = replace(report, downloads=downloads(every_table))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(render(report, fio_jobs(report, paths)), encoding="utf-8")


def gathered(
    tables: Mapping[str, Any], recordings: Iterable[Path], figures: Iterable[Path], study: Mapping[str, Any]
) -> tuple[Report, dict[str, Path]]:
    """Return the report before layout, and the folder of each recording; arguments as in `write_report`."""
    frames = {name: io.read(paths, name) for name, paths in tables.items()}
    plans = [describe(recording, study) for recording in recordings]
    report = build(frames, study, plans, [_figure(path) for path in figures], datetime.now(UTC))
    return report, {plan["recording"]: Path(plan["path"]) for plan in plans}


def describe(recording: Path, study: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of one recording for the header block of its page."""
    plan = Plan.read(recording / "plan.json")
    journal = list(read_journal(recording))
    host = json.loads((recording / "host.json").read_text())
    protocol = study["protocols"][plan.subject["protocol"]]
    return {
        "recording": plan.recording,
        "drive": plan.drive,
        "measurement": plan.measurement,
        "run": plan.run,
        "protocol": {"name": plan.subject["protocol"], **protocol},
        "condition": {
            "purge": next((line for line in reversed(journal) if line["event"] == "purge"), None),
            "settle_s": plan.subject["condition"].get("settle_s"),
            "fill": plan.subject["condition"].get("fill"),
            "rest_s": plan.subject["condition"].get("rest_s"),
            "scenario_required": plan.subject["condition"].get("scenario_required"),
            "seals": [line["reason"] for line in journal if line["event"] == "verdict" and line["intact"]],
        },
        "class": {
            **plan.subject["class"],
            **procedure.demand(plan.subject),
            "active_range": procedure.active_range(plan.subject),
            "write_cache": _write_cache(recording),
        },
        "ends": procedure.stop_rules(plan.subject),
        "rounds": procedure.rounds(plan.subject),
        "together_with": procedure.others(journal),
        "points": procedure.points(journal),
        "platform": procedure.platform(plan.subject),
        "reduced": bool(study["altered"][plan.recording]),
        "reduced_why": list(study["altered"][plan.recording]),
        "virtual": plan.virtual,
        "clock": plan.clock,
        "clock_reason": study["clock_reason"] if plan.clock == "virtual" else None,
        "started": journal[0]["at"],
        "finished": journal[-1]["at"],
        "data_pattern": _data_pattern(plan),
        "engine": _engine(journal, host["engine"]),
        "host": host["host"],
        "scenario": plan.subject["scenario"],
        "settings": _deviations(recording),
        "notes": _notes(journal),
        "evidence": "checksummed" if checksummed(recording) else "not checksummed",
        "path": str(recording),
    }


def _deviations(recording: Path) -> list[dict[str, Any]] | None:
    """Return the settings that deviate from the scenario; None if they were not checked."""
    rows = settings(recording, "name", "scope", "state", "wanted", "deviation", "effect")
    return None if rows is None else deviations(rows)


def _write_cache(recording: Path) -> str | None:
    """Return the state of the volatile write cache, by the drive or else the kernel; None if unknown."""
    facts = json.loads((recording / "identity.json").read_text())
    names = {"none": "the drive has none", "write back": "on", "write through": "off"}
    state = facts.get("drive_write_cache") or facts.get("write_cache")
    return None if state is None else names.get(state, str(state))


def _data_pattern(plan: Plan) -> str:
    if all("application" in step for step in plan.subject["measure"]) and plan.clock == "wall":
        return "the application's own"
    return "random: at least 94 % is incompressible, and all pages differ"


def _engine(journal: list[dict[str, Any]], of_cells: str) -> str:
    """Return the engine of the first replay or application, else the engine of the cells."""
    for line in journal:
        if line["event"] == "replay":
            return str(line["engine"])
        if line["event"] == "application":
            return str(line.get("remark", f"application {line['application']}"))
    return of_cells


def _notes(journal: list[dict[str, Any]]) -> list[str]:
    """Return the events of a recording that a reader must know about."""
    notes = [f"Gap: {line['reason']}." for line in journal if line["event"] == "gap"]
    notes += [
        f"The state of the drive changed after {line['stage']} ({line['reason']}). "
        "drivelab purged and preconditioned it again."
        for line in journal
        if line["event"] == "verdict" and not line["intact"]
    ]
    repeated = [line for line in journal if line["event"] == "tainted"]
    if repeated:
        reasons = "; ".join(digest("; ".join(line["reasons"]) for line in repeated))
        notes.append(f"Tainted cells were measured again, {len(repeated)} times: {reasons}.")
    notes += [
        "The purge left every block written once. The drive was not in its fresh-out-of-box state."
        for line in journal
        if line["event"] == "purge" and line.get("leaves") == "written once"
    ]
    remarks = dict.fromkeys(line["remark"] for line in journal if line["event"] == "application" and "remark" in line)
    notes += [f"The duration of the application is {remark}." for remark in remarks]
    notes += [f"A cell failed and was run again: {line['reason']}." for line in journal if line["event"] == "failed"]
    return notes


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
        "name": path.stem,
        "title": ALL[path.stem].title,
        "caption": ALL[path.stem].caption,
        "svg": path.read_text(encoding="utf-8"),
    }
