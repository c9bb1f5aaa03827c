"""A plan in words for the header of a page: demand, stop rules, uncounted rounds, pauses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drivelab.protocol.plan_fields import cells_of
from drivelab.report.numbers import DASH, duration, metric_name, number, share
from drivelab.units import format_size

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
        yield from (workload[name] for workload in (cell, cell.get("beside", {})) if name in workload)


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
        yield _count(until["rounds"], "round")
    if "passes" in until:
        yield _count(until["passes"], repeats.removesuffix("s"))
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


def _count(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


def rounds(subject: Mapping[str, Any]) -> list[str]:
    """Describe cold rounds, pauses, and an order other than round by round."""
    notes: dict[str, None] = {}
    for fields in (fields for step in subject["measure"] for fields in step.values()):
        if fields.get("cold_rounds"):
            notes[f"{_count(fields['cold_rounds'], 'cold round')} before the counted rounds"] = None
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
