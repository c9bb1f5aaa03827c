"""Collect the files of a study's report: tables, recordings and figures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drivelab.collect.inventory import is_virtual, settings
from drivelab.core.files import write_atomic
from drivelab.core.units import counted, format_size
from drivelab.criteria.taint import digest
from drivelab.figures.of_recording import OF_A_RECORDING, OVER_DRIVES, OVER_SIZES, figure_kinds, figures_of
from drivelab.figures.registry import ALL
from drivelab.host.settings import deviations
from drivelab.plan.cell import beside_of, cells_of
from drivelab.plan.plan import Plan
from drivelab.recording.checksums import checksummed
from drivelab.recording.folders import STUDY_TABLES, tables_folder
from drivelab.recording.writer import read_journal
from drivelab.report.content import build
from drivelab.report.document import Report
from drivelab.report.html import downloads, render
from drivelab.report.numbers import DASH, duration, metric_name, number, share
from drivelab.report.sections.proof import fio_jobs
from drivelab.tables import io

_OF_RECORDINGS = (
    "cells", "steady_state", "replays", "replay_passes", "replay_operations", "replay_streams", "replay_mappings",
    "application_runs", "load_rates", "findings", "saturation",
)  # fmt: skip
Step = Mapping[str, Any]
_VARIES = "varies by cell"


def demand(subject: Mapping[str, Any]) -> dict[str, int | str]:
    """Return threads and queue depth of all steps, in words if they vary."""
    result: dict[str, int | str] = {}
    kinds = {kind for step in subject["measure"] for kind in step} - {"idle"}
    if kinds == {"replay"}:
        return {"threads": 1, "queue_depth": "set by the replay"}
    if kinds == {"application"}:
        return {"threads": "set by the application", "queue_depth": "set by the application"}
    for name in ("threads", "queue_depth"):
        values = {value for step in subject["measure"] for value in _values(step, name)}
        if not values:
            values = {subject["class"][name]}
        if len(values) == 1:
            result[name] = next(iter(values))
        else:
            numbers = sorted(map(int, values))
            result[name] = f"{_VARIES}, {numbers[0]}{DASH}{numbers[-1]}"
    return result


def _values(step: Step, name: str) -> Iterator[int]:
    """Yield threads or depths of a step; none if a point of an earlier step sets them."""
    for fields in step.values():
        if "streams" in fields:
            yield from fields["streams"][name]
    for cell in _cells(step):
        yield from (workload[name] for workload in (cell, *beside_of(cell)) if name in workload)


def active_range(subject: Mapping[str, Any]) -> str | float:
    """Return the active share of the drive, or a text if cells set ranges."""
    default = subject["class"]["active_range"]
    ranges = dict.fromkeys(_range(cell, default) for step in subject["measure"] for cell in _cells(step))
    return next(iter(ranges)) if len(ranges) == 1 else "; ".join(map(share, ranges)) if ranges else default


def _range(cell: Mapping[str, Any], default: str | float) -> str | float:
    active: str | float = format_size(int(cell["range_bytes"])) if "range_bytes" in cell else default
    if cell.get("segments", 1) > 1:
        active = f"{share(active)} in {cell['segments']} segments"
    return active


def _cells(step: Step) -> Iterator[Mapping[str, Any]]:
    for fields in step.values():
        yield from cells_of(fields)


def stop_rules(subject: Mapping[str, Any]) -> list[str]:
    """Return the distinct stop rules of the steps."""
    return list(dict.fromkeys(rule for step in subject["measure"] for rule in _stop_rule(step)))


def _stop_rule(step: Step) -> Iterator[str]:
    ((kind, fields),) = step.items()
    if "until" not in fields:
        return
    yield f"{kind}: {' or '.join(_until(kind, fields['until']))}"


def _until(kind: str, until: Mapping[str, Any]) -> Iterator[str]:
    repeats = {"loop": "rounds", "application": "warm runs", "replay": "runs"}.get(kind, "rounds")
    if "track" in until:
        yield f"{until['window']} rounds in steady state, at most {until['max_rounds']} rounds"
    if "rounds" in until:
        yield counted(until["rounds"], "round")
    if "passes" in until:
        yield counted(until["passes"], repeats.removesuffix("s"))
    if "threshold" in until:
        yield (f"3, 5 or 7 {'warm rounds' if kind == 'loop' else repeats}, until the relative standard error of "
               f"{metric_name(until['metric'])} is at most {share(until['threshold'])}")  # fmt: skip
    if "capacity_multiple" in until:
        yield f"{number(until['capacity_multiple'])} times the capacity written"
    if "steady_state" in until:
        rule = until["steady_state"]
        yield f"{rule['window']} values in steady state, one every {duration(rule['every_s'])}"
    if "time_s" in until:
        yield duration(until["time_s"])


def rounds(subject: Mapping[str, Any]) -> list[str]:
    """Describe cold rounds, pauses, and an order other than round by round."""
    notes: dict[str, None] = {}
    for fields in (fields for step in subject["measure"] for fields in step.values()):
        if fields.get("cold_rounds"):
            notes[f"{counted(fields['cold_rounds'], 'cold round')} before the counted rounds"] = None
        if fields.get("order") == "cells":
            notes["all rounds of a cell before the next cell"] = None
        if "duty_cycle" in fields:
            notes[f"duty cycle {share(fields['duty_cycle'])}: idle after each cell"] = None
    pauses = [fields["pause_s"] for step in subject["measure"] for fields in step.values() if "pause_s" in fields]
    if pauses:
        notes[f"idle after each cell: {', '.join(map(duration, dict.fromkeys(pauses)))}"] = None
    return list(notes)


def others(journal: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the drives that were measured at the same time."""
    return list(dict.fromkeys(name for line in journal if line["event"] == "together" for name in line["with"]))


def points(journal: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the journal's last line on each point chosen from a sweep."""
    lines = {(line["step"], line["name"]): line for line in journal if line["event"] == "point"}
    return list(lines.values())


def platform(subject: Mapping[str, Any]) -> str | None:
    """Return host and host scenario in a study of platforms; None in other studies."""
    fields = subject.get("platform")
    if fields is None:
        return None
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in fields.items())


def write_report(study: Mapping[str, Any], output: Path) -> None:
    """Write the report of a study into its results folder, at `report/index.html`; arguments as in `gathered`."""
    results = output.parents[1]
    report, paths = gathered(study, results)
    files = [path for folder in map(tables_folder, paths.values()) for path in sorted(folder.glob("*.parquet"))]
    files += sorted((results / "tables").glob("*.parquet")) + sorted((results / "tables/traces").glob("*/*.parquet"))
    report = replace(report, downloads=downloads(files))
    output.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(output, render(report, fio_jobs(report, paths)))


def gathered(study: Mapping[str, Any], results: Path) -> tuple[Report, dict[str, Path]]:
    """Return the report before layout, and the folder of each recording.

    `study` is `Layout.report_facts`; `results` holds the tables and figures of the study.
    """
    recordings = [results / "recordings" / name for name in study["recordings"]]
    frames = {name: io.read(results / f"tables/{name}.parquet", name) for name in STUDY_TABLES}
    for name in _OF_RECORDINGS:
        frames[name] = io.read([tables_folder(recording) / f"{name}.parquet" for recording in recordings], name)
    plans = [describe(recording, study) for recording in recordings]
    drawn = [folder for folder in recordings if "nines" in figure_kinds(Plan.read(folder / "plan.json").subject)]
    bins = [tables_folder(recording) / "latency_bins.parquet" for recording in drawn]
    frames["latency_bins"] = io.read(bins, "latency_bins")
    figures = [_figure(path) for path in _figure_files(recordings, study, results / "figures")]
    report = build(frames, study, plans, figures, datetime.now(UTC))
    return report, {plan["recording"]: Path(plan["path"]) for plan in plans}


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
            "rest": next((line for line in reversed(journal) if line["event"] == "rest"), None),
            "scenario_required": plan.subject["condition"].get("scenario_required"),
            "array_states": [line["state"] for line in journal if line["event"] == "array"],
            "seals": [line["reason"] for line in journal if line["event"] == "verdict" and line["intact"]],
        },
        "class": {
            **plan.subject["class"],
            **demand(plan.subject),
            "active_range": active_range(plan.subject),
            "write_cache": _write_cache(recording),
        },
        "ends": stop_rules(plan.subject),
        "rounds": rounds(plan.subject),
        "together_with": others(journal),
        "points": points(journal),
        "platform": platform(plan.subject),
        "reduced": bool(study["altered"][plan.recording]),
        "reduced_why": list(study["altered"][plan.recording]),
        "virtual": is_virtual(recording, plan),
        "clock": plan.clock,
        "clock_reason": study["clock_reason"] if plan.clock == "virtual" else None,
        "started": journal[0]["at"],
        "finished": journal[-1]["at"],
        "filled_bytes": sum(line.get("bytes") or 0 for line in journal if line["event"] == "fill"),
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
    """Return the engine of the first replay, load or application, else the engine of the cells."""
    for line in journal:
        if line["event"] in ("replay", "load"):
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
        times = "once" if len(repeated) == 1 else f"{len(repeated)} times"
        notes.append(f"Tainted cells or replays were measured again, {times}: {reasons}.")
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
