"""Describe a recording for the pages of a report: its plan, and what its journal says happened."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from drivelab.collect.inventory import is_virtual, settings
from drivelab.core.grouping import grouped
from drivelab.core.units import counted, format_size
from drivelab.criteria.taint import digest
from drivelab.host.settings import deviations
from drivelab.plan.cell import beside_of, cells_of, fills
from drivelab.plan.plan import Plan
from drivelab.recording.checksums import checksummed
from drivelab.recording.writer import read_journal
from drivelab.report.numbers import DASH, TIMES, duration, is_missing, metric_name, number, share, text

Line = Mapping[str, Any]
"""A line of a journal."""
Step = tuple[str, Mapping[str, Any]]
"""Kind and fields of a step of a plan."""


_CACHES = {"none": "the drive has none", "write back": "on", "write through": "off"}
"""States of the volatile write cache, by the drive or else the kernel."""


def describe(recording: Path, study: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of one recording, one for each column; `study` are those of the study."""
    plan = Plan.read(recording / "plan.json")
    subject, steps = plan.subject, [step for fields in plan.subject["measure"] for step in fields.items()]
    condition, drive_class, platform = subject["condition"], subject["class"], subject.get("platform") or {}
    journal = list(read_journal(recording))
    lines = grouped(journal, lambda line: str(line["event"]))
    host = json.loads((recording / "host.json").read_text())
    found = settings(recording, "name", "scope", "state", "wanted", "deviation", "effect")
    altered = study["altered"][plan.recording]
    identity = json.loads((recording / "identity.json").read_text())
    cache = identity.get("drive_write_cache") or identity.get("write_cache")
    return {
        "recording": plan.recording,
        "path": str(recording),
        "drive": plan.drive,
        "measurement": plan.measurement,
        "run": plan.run,
        "protocol": {"name": subject["protocol"], **study["protocols"][subject["protocol"]]},
        "purge": purge(lines.get("purge", [])),
        "settle": f"{condition['settle_s']:g} s" if "settle_s" in condition else "none",
        "fill": fill(fills(condition)),
        "rest": rest(lines.get("rest", [])),
        "seals": _distinct(line["reason"] for line in lines.get("verdict", ()) if line["intact"]),
        "array": ", then ".join(dict.fromkeys(line["state"] for line in lines.get("array", ()))),
        "class": drive_class["name"],
        **demand(steps, drive_class),
        "active_range": active_range(steps, drive_class["active_range"]),
        "write_cache": None if cache is None else _CACHES.get(cache, str(cache)),
        "ends": _distinct(f"{kind}: {' or '.join(rules)}" for kind, fields in steps
                          if (rules := list(stop_rules(kind, fields.get("until", {}))))),
        "rounds": _distinct(rounds(steps)),
        "together_with": _distinct(name for line in lines.get("together", ()) for name in line["with"]),
        "points": list({(line["step"], line["name"]): line for line in lines.get("point", ())}.values()),
        "platform": ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in platform.items()),
        "reduced": bool(altered),
        "reduced_why": list(altered),
        "virtual": is_virtual(recording, plan),
        "clock": plan.clock,
        "clock_reason": study["clock_reason"] if plan.clock == "virtual" else None,
        "started": journal[0]["at"],
        "finished": journal[-1]["at"],
        "filled_bytes": sum(line.get("bytes") or 0 for line in lines.get("fill", ())),
        "data_pattern": "the application's own"
        if plan.clock == "wall" and all(kind == "application" for kind, _ in steps)
        else "random: at least 94 % is incompressible, and all pages differ",
        "engine": _engine(journal, host["engine"]),
        "host": host["host"],
        "scenario": subject["scenario"],
        "scenario_required": condition.get("scenario_required"),
        "settings": None if found is None else deviations(found),
        "notes": list(_notes(lines)),
        "evidence": "checksummed" if checksummed(recording) else "not checksummed",
    }  # fmt: skip


def _distinct(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(filter(None, texts)))


def purge(lines: Sequence[Line]) -> str | None:
    """Return the purge method and its verification, from the last line on it; None without a purge."""
    if not lines:
        return None
    line, verified = lines[-1], lines[-1].get("verified")
    name = text(line.get("title") or line.get("method"))
    if line.get("method") == "none":
        return f"{name} ({verified})"
    if verified is False:
        return f"{name}; not verified"
    return name if is_missing(verified) else f"{name}; verified{'' if verified is True else f': {verified}'}"


def fill(passes: Sequence[Mapping[str, Any]]) -> str:
    """Describe the workload-independent preconditioning, or `none`."""
    texts = []
    for fields in passes:
        target = f"{share(fields['range_share'])} of the range" if "range_share" in fields else "the active range"
        multiples = (("capacity_multiple", target), ("raw_capacity_multiple", "the raw capacity"))
        amounts = [f"{number(fields[name])} {TIMES} {of}," for name, of in multiples if name in fields]
        texts.append(" ".join([*amounts, fields["pattern"], format_size(fields["block_size_bytes"]), "writes"]))
    return "; then ".join(texts) or "none"


def rest(lines: Sequence[Line]) -> str:
    """Return the idle time after the fill, and whether the cache was then free, or `none`."""
    if not lines:
        return "none"
    line = lines[-1]
    words = f"cache flushed, then {duration(line['rest_s'])} idle"
    if line.get("as_empty") is None:
        return words
    times = f", {line['rests']} times" if line["rests"] > 1 else ""
    factor = number(line["empty_us"] / line["rested_us"])
    verdict = "cache free" if line["as_empty"] else "cache perhaps not free"
    return f"{words}{times}: {verdict}, writes at {factor}{TIMES} the speed of the empty drive"


def demand(steps: Sequence[Step], drive_class: Mapping[str, Any]) -> dict[str, int | str]:
    """Return threads and queue depth of all steps, in words if they vary."""
    kinds = {kind for kind, _ in steps} - {"idle"}
    if kinds == {"replay"}:
        return {"threads": 1, "queue_depth": "set by the replay"}
    if kinds == {"application"}:
        return dict.fromkeys(("threads", "queue_depth"), "set by the application")
    result: dict[str, int | str] = {}
    cells = [cell for _, fields in steps for cell in cells_of(fields)]
    workloads = [workload for cell in cells for workload in (cell, *beside_of(cell))]
    for name in ("threads", "queue_depth"):
        of_cells = {int(workload[name]) for workload in workloads if name in workload}
        of_streams = {int(value) for _, fields in steps for value in fields.get("streams", {}).get(name, ())}
        values = sorted(of_cells | of_streams or {drive_class[name]})
        result[name] = values[0] if len(values) == 1 else f"varies by cell, {values[0]}{DASH}{values[-1]}"
    return result


def active_range(steps: Sequence[Step], default: str | float) -> str:
    """Return the active share of the drive, and the ranges that cells set."""
    ranges: dict[str, None] = {}
    for cell in (cell for _, fields in steps for cell in cells_of(fields)):
        active = share(format_size(int(cell["range_bytes"])) if "range_bytes" in cell else default)
        ranges[f"{active} in {cell['segments']} segments" if cell.get("segments", 1) > 1 else active] = None
    return "; ".join(ranges) or share(default)


def stop_rules(kind: str, until: Mapping[str, Any]) -> Iterator[str]:
    """Yield each rule that may end a step."""
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


def rounds(steps: Sequence[Step]) -> Iterator[str]:
    """Describe cold rounds, pauses, and an order other than round by round."""
    for _, fields in steps:
        if fields.get("cold_rounds"):
            yield f"{counted(fields['cold_rounds'], 'cold round')} before the counted rounds"
        if fields.get("order") == "cells":
            yield "all rounds of a cell before the next cell"
        if "duty_cycle" in fields:
            yield f"duty cycle {share(fields['duty_cycle'])}: idle after each cell"
    pauses = dict.fromkeys(duration(fields["pause_s"]) for _, fields in steps if "pause_s" in fields)
    if pauses:
        yield f"idle after each cell: {', '.join(pauses)}"


def _engine(journal: Sequence[Line], of_cells: str) -> str:
    """Return the engine of the first replay, load or application, else the engine of the cells."""
    for line in journal:
        if line["event"] in ("replay", "load"):
            return str(line["engine"])
        if line["event"] == "application":
            return str(line.get("remark", f"application {line['application']}"))
    return of_cells


def _notes(lines: Mapping[str, Sequence[Line]]) -> Iterator[str]:
    """Yield the events of a recording that a reader must know about."""
    for line in lines.get("gap", ()):
        yield f"Gap: {line['reason']}."
    for line in lines.get("verdict", ()):
        if not line["intact"]:
            yield (f"The state of the drive changed after {line['stage']} ({line['reason']}). drivelab purged and "
                   "preconditioned it again.")  # fmt: skip
    if repeated := lines.get("tainted", ()):
        reasons = "; ".join(digest("; ".join(line["reasons"]) for line in repeated))
        times = "once" if len(repeated) == 1 else f"{len(repeated)} times"
        yield f"Tainted cells or replays were measured again, {times}: {reasons}."
    for line in lines.get("purge", ()):
        if line.get("leaves") == "written once":
            yield "The purge left every block written once. The drive was not in its fresh-out-of-box state."
    remarks = dict.fromkeys(line["remark"] for line in lines.get("application", ()) if "remark" in line)
    for remark in remarks:
        yield f"The duration of the application is {remark}."
    for line in lines.get("failed", ()):
        yield f"A cell failed and was run again: {line['reason']}."
