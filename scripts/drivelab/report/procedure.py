"""What a plan does, in words for the header of a page: demand, stop rules, rounds that do not count, pauses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drivelab.protocol.plan_fields import cells_of
from drivelab.report.numbers import DASH, duration, metric_name, number, share
from drivelab.units import format_size

Step = Mapping[str, Any]
_AS_IN_CELLS = "as in the cells"


def demand(subject: Mapping[str, Any]) -> dict[str, int | str]:
    """Threads and depth of all steps; in words where they are not the same throughout."""
    found: dict[str, int | str] = {}
    kinds = {kind for step in subject["measure"] for kind in step} - {"idle"}
    if kinds == {"replay"}:
        return {"threads": 1, "queue_depth": "as the replay has in flight"}
    if kinds == {"application"}:
        return {"threads": "the application's own", "queue_depth": "as the application has in flight"}
    for name in ("threads", "queue_depth"):
        values = {value for step in subject["measure"] for value in _values(step, name)}
        if not values:
            values = {subject["class"][name]}
        if len(values) == 1:
            found[name] = next(iter(values))
        else:
            numbers = sorted(int(value) for value in values)
            found[name] = f"{_AS_IN_CELLS}, {numbers[0]}{DASH}{numbers[-1]}"
    return found


def _values(step: Step, name: str) -> Iterator[int]:
    """Threads or depths of a step; none where a point of an earlier step gives them."""
    for fields in step.values():
        if "streams" in fields:
            yield from fields["streams"][name]
    for cell in _cells(step):
        yield from (one[name] for one in (cell, cell.get("beside", {})) if name in one)


def active_range(subject: Mapping[str, Any]) -> str | float:
    """Share of the drive, or in words where cells have ranges of their own."""
    whole = subject["class"]["active_range"]
    ranges = dict.fromkeys(_range(cell, whole) for step in subject["measure"] for cell in _cells(step))
    return next(iter(ranges)) if len(ranges) == 1 else whole if not ranges else "; ".join(
        one if isinstance(one, str) else share(one) for one in ranges
    )  # fmt: skip


def _range(cell: Mapping[str, Any], whole: str | float) -> str | float:
    found: str | float = whole
    if "range_bytes" in cell:
        found = format_size(int(cell["range_bytes"]))
    if cell.get("segments", 1) > 1:
        found = f"{found if isinstance(found, str) else share(found)} in {cell['segments']} segments"
    return found


def _cells(step: Step) -> Iterator[Mapping[str, Any]]:
    for fields in step.values():
        yield from cells_of(fields)


def stop_rules(subject: Mapping[str, Any]) -> list[str]:
    """What ends each step, once for all steps that end alike."""
    return list(dict.fromkeys(words for step in subject["measure"] for words in _stop_rule(step)))


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


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def rounds(subject: Mapping[str, Any]) -> list[str]:
    """Cold rounds, pauses, and the order where it is not round by round."""
    found: dict[str, None] = {}
    for fields in (fields for step in subject["measure"] for fields in step.values()):
        if fields.get("cold_rounds"):
            found[f"{_count(fields['cold_rounds'], 'cold round')} before those that count"] = None
        if fields.get("order") == "cells":
            found["all rounds of a cell before the next cell"] = None
        if "duty_cycle" in fields:
            found[f"duty cycle {share(fields['duty_cycle'])}: idle after each cell"] = None
    pauses = [fields["pause_s"] for step in subject["measure"] for fields in step.values() if "pause_s" in fields]
    if pauses:
        waits = ", ".join(duration(one) for one in dict.fromkeys(pauses))
        found[f"idle after each cell: {waits}"] = None
    return list(found)


def others(journal: Sequence[Mapping[str, Any]]) -> list[str]:
    """Drives that were measured at the same time."""
    return list(dict.fromkeys(name for line in journal if line["event"] == "together" for name in line["with"]))


def points(journal: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Lines of the journal on points that were chosen from a sweep, the last one on each."""
    found = {(line["step"], line["name"]): line for line in journal if line["event"] == "point"}
    return list(found.values())


def platform(subject: Mapping[str, Any]) -> str | None:
    """The platform of a study of platforms: its host, and the scenario that the host is set to."""
    told = subject.get("platform")
    if told is None:
        return None
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in told.items())
