"""What a protocol does to a drive, step by step, in words and numbers: for people who choose or write one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod
from typing import Any

from drivelab.plan.cell import COMPOSITE, Cell
from drivelab.plan.plan import Plan
from drivelab.protocol.grammar import Resolved
from drivelab.protocol.plan_fields import fills, rounds_at_least, rounds_at_most
from drivelab.stages.estimate import Estimate, Trace, estimate
from drivelab.stages.fitting import refuse_unfit
from drivelab.units import format_amount, format_duration, format_size

METRICS = {"iops": "IOPS", "bandwidth_mib_s": "bandwidth", "mean_latency_us": "mean latency", "duration_s": "duration",
           "access_time_us": "access time", "score": "score"}  # fmt: skip


_OF_A_GRID = ("block_size_bytes", "read_share", "threads", "queue_depth")
"""Fields in which the cells of a grid may differ."""
_FEW = 6
"""Fewer cells than this are named one by one."""


@dataclass(frozen=True)
class Subject:
    """The drive that a protocol is looked at for."""

    name: str
    capacity_bytes: int
    write_mib_s: float
    """Assumed for volumes."""
    over_provisioning: float
    traces: tuple[Trace, ...] = ()
    """What replays mean; empty where no trace is named, and their time is unknown then."""
    logical_block_bytes: int = 512
    fastest_mib_s: float | None = None
    """What bounds the bytes that are written in a time; None: the assumed speed."""
    virtual: Mapping[str, Any] | None = None
    """The model of a virtual drive."""


@dataclass(frozen=True)
class Part:
    """One step, conditioning included."""

    words: str
    details: tuple[str, ...]
    estimate: Estimate | None
    """None where it depends on something that is not known: a trace, an application."""

    @property
    def time(self) -> str:
        if self.estimate is None:
            return "unknown"
        return _span(self.estimate.least_s, self.estimate.most_s, format_seconds)

    @property
    def written(self) -> str:
        if self.estimate is None:
            return "unknown"
        return _span(self.estimate.least_bytes, self.estimate.most_bytes, format_amount)


def _span(least: float, most: float, words: Any) -> str:
    low, high = words(least), words(most)
    return low if low == high else f"{low} to {high}"


def procedure(resolved: Resolved, subject: Subject) -> tuple[Part, ...]:
    """The parts of one measurement in the order in which they are carried out.

    Raises UserError for what the drive cannot be asked for, as for a study.
    """
    refuse_unfit(_plan(resolved, subject, resolved.steps["condition"], resolved.steps["measure"]),
                 subject.capacity_bytes, subject.logical_block_bytes)  # fmt: skip
    return (*_condition(resolved, subject), *_measure(resolved, subject))


def total(parts: Sequence[Part]) -> Part:
    """All parts together; what is unknown is left out and said."""
    known = [part.estimate for part in parts if part.estimate is not None]
    rest = "" if len(known) == len(parts) else ", without what is unknown"
    return Part(f"altogether{rest}", (), sum(known, Estimate()))


def _condition(resolved: Resolved, subject: Subject) -> Iterator[Part]:
    condition = resolved.steps["condition"]
    if condition.get("scenario_required"):
        yield Part("host settings must be as the scenario wants them, or nothing begins", (), Estimate())
    bare = {"purge": condition["purge"], **{key: condition[key] for key in ("settle_s",) if key in condition}}
    if condition["purge"] == "none":
        yield Part("no purge: the drive as it is", (), Estimate())
    else:
        settle = f", then {format_seconds(condition['settle_s'])} of rest" if "settle_s" in condition else ""
        yield Part(f"purge{settle}", (), _estimate(resolved, subject, {**bare, "purge": "auto"}, []))
    for one in fills(condition):
        yield Part(_fill(one), (), _estimate(resolved, subject, {"purge": "none", "fill": one}, []))
    if "rest_s" in condition:
        rest_s = condition["rest_s"]
        yield Part(f"flush of the drive's cache, then {format_seconds(rest_s)} of rest", (), Estimate(rest_s, rest_s))


def _fill(one: Mapping[str, Any]) -> str:
    workload = Cell(one["pattern"], 0, one["block_size_bytes"], 1, one["queue_depth"]).label
    span = f"{one['range_share']:.0%} of the active range" if "range_share" in one else "the active range"
    if "range_bytes" in one:
        span = f"the first {format_amount(one['range_bytes'])}"
    if "raw_capacity_multiple" in one:
        within = "" if span == "the active range" else f", within {span}"
        return f"fill: {workload}, {one['raw_capacity_multiple']:g} x the raw capacity{within}"
    return f"fill: {workload}, {one['capacity_multiple']:g} x {span}"


def _measure(resolved: Resolved, subject: Subject) -> Iterator[Part]:
    for number, step in enumerate(resolved.steps["measure"]):
        ((kind, fields),) = step.items()
        known = kind != "application" and (kind != "replay" or subject.traces)
        words, details = _WORDS[kind](fields)
        if "phase" in fields:
            value = f" {fields['phase_value']}" if "phase_value" in fields else ""
            words = f"[{fields['phase']}{value or ' ' + str(fields['phase_pass'])}] {words}"
        found = _estimate(resolved, subject, {"purge": "none"}, [step]) if known else None
        yield Part(f"step {number + 1}, {words}", tuple(details), found)


def _estimate(
    resolved: Resolved, subject: Subject, condition: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]
) -> Estimate:
    plan = _plan(resolved, subject, condition, steps)
    return estimate(plan, subject.capacity_bytes, subject.write_mib_s, subject.traces, subject.fastest_mib_s)


def _plan(
    resolved: Resolved, subject: Subject, condition: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]
) -> Plan:
    virtual = {} if subject.virtual is None else {"virtual": subject.virtual}
    return Plan({
        "drive": {"over_provisioning": subject.over_provisioning, **virtual}, "clock": "wall",
        **resolved.steps, "condition": condition, "measure": steps,
    }, {"drive": subject.name, "measurement": "this protocol"})  # fmt: skip


def _loop(fields: Mapping[str, Any]) -> tuple[str, list[str]]:
    until = fields["until"]
    least, most = rounds_at_least(until), rounds_at_most(until)
    rounds = f"{least} rounds" if least == most else f"{least} to {most} rounds"
    if "cold_rounds" in fields:
        rounds = f"{fields['cold_rounds']} uncounted and {rounds}"
    if "streams" in fields:
        what, details = _streams(fields["streams"])
    else:
        cells = fields["cells"]
        runtimes = {one["runtime_s"] for one in fields["cells"]}
        each = f" of {format_seconds(runtimes.pop())}" if len(runtimes) == 1 else ""
        what = f"{len(cells)} {'cell' if len(cells) == 1 else 'cells'}{each}"
        details = _grids(fields["cells"])
    order = ", all rounds of a cell before the next cell" if fields.get("order") == "cells" else ""
    if "pause_s" in fields:
        order += f", {format_seconds(fields['pause_s'])} of rest after each cell"
    if "duty_cycle" in fields:
        order += f", active {fields['duty_cycle']:.0%} of the time"
    return f"loop: {rounds} of {what}{order}{_loop_until(until)}", details


def _grids(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """The cells in a line: those that differ in the fields of a grid only, and are all its combinations, as a grid."""
    same = [tuple(sorted((k, str(v)) for k, v in one.items() if k not in _OF_A_GRID)) for one in cells]
    groups = [[one for _, one in group] for _, group in groupby(zip(same, cells, strict=True), lambda pair: pair[0])]
    return ["; ".join(_grid(group) or "; ".join(map(_cell, group)) for group in groups)]


def _grid(cells: Sequence[Mapping[str, Any]]) -> str | None:
    """In words, if the cells are more than a few and all combinations of their values."""
    values = {key: list(dict.fromkeys(one.get(key) for one in cells)) for key in _OF_A_GRID}
    if (
        len(cells) < _FEW
        or prod(map(len, values.values())) != len(cells)
        or any(None in one for one in values.values())
    ):
        return None
    kind, size, *_ = _cell(cells[0], demand=False).partition(", ")[0].split(" ")
    sizes, mix = values["block_size_bytes"], " mix" if "block_sizes" in cells[0] else ""
    parts = [
        f"{kind} {_list(sizes, format_size) if len(sizes) > 1 else size + mix}",
        f"reads {_list(values['read_share'], str)} %",
        f"threads {_list(values['threads'], str)}",
        f"depth {_list(values['queue_depth'], str)}",
    ]
    after = _cell(cells[0], demand=False).partition(", ")[2]
    return " x ".join(parts) + (f", {after}" if after else "")


def _list(values: Sequence[Any], words: Callable[[Any], str]) -> str:
    return "/".join(map(words, values))


def _loop_until(until: Mapping[str, Any]) -> str:
    if "track" in until:
        return f", until steady state of {' and '.join(_tracked(one) for one in until['track'])}"
    if "threshold" in until:
        return f", until the relative standard error of {METRICS[until['metric']]} is at most {until['threshold']:.0%}"
    return ""


def _tracked(variable: Mapping[str, Any]) -> str:
    demand = "".join(f"{letter}{variable[key]}" for letter, key in (("T", "threads"), ("Q", "queue_depth"))
                     if key in variable)  # fmt: skip
    known = {"pattern", "read_share", "block_size_bytes"} <= variable.keys()
    facts = {key: value for key, value in variable.items() if key not in ("metric", "threads", "queue_depth")}
    name = f"the cell with {variable.get('read_share')} % reads"
    if "streams" in variable:
        name = "every stream"
    elif known:
        name = Cell(**facts, threads=1, queue_depth=1).workload
    if variable.get("alignment_offset_bytes") == 0:
        name += ", aligned"
    return f"{METRICS[variable['metric']]} of {name}{' ' + demand if demand else ''}"


def _streams(streams: Mapping[str, Any]) -> tuple[str, list[str]]:
    demand = [f"T{t}Q{q}" for t in streams["threads"] for q in streams["queue_depth"]]
    what = "a composite" if streams["kind"] == COMPOSITE else "each"
    return f"{what} of the trace's {streams['most']} most frequent streams", [", ".join(demand)]


def _soak(fields: Mapping[str, Any]) -> tuple[str, list[str]]:
    until, ends = fields["until"], []
    if "capacity_multiple" in until:
        ends.append(f"{until['capacity_multiple']:g} x the capacity")
    if "steady_state" in until:
        rule = until["steady_state"]
        window = f"{rule['window']} x {format_seconds(rule['every_s'])}"
        ends.append(f"steady state of {METRICS[rule['metric']]} over {window}")
    if "time_s" in until:
        ends.append(format_seconds(until["time_s"]))
    slices = format_seconds(fields["cell"]["slice_s"])
    return f"soak: {_cell(fields['cell'])} in slices of {slices} without a pause, until {' or '.join(ends)}", []


def _cell(mapping: Mapping[str, Any], *, demand: bool = True) -> str:
    cell = Cell(**{"threads": 1, "queue_depth": 1, **mapping})
    if "queue_depth" not in mapping:
        return f"{cell.workload} at the point's threads and depth"
    return cell.label if demand else cell.workload


def _idle(fields: Mapping[str, Any]) -> tuple[str, list[str]]:
    return f"idle: {format_seconds(fields['time_s'])}", []


def _replay(fields: Mapping[str, Any]) -> tuple[str, list[str]]:
    from drivelab.replay.choice import ReplayChoice  # with pyarrow, which other protocols must not wait for

    return f"replay: {_cold(fields)}, {ReplayChoice.from_mapping(fields['choice']).words()}", []


def _application(fields: Mapping[str, Any]) -> tuple[str, list[str]]:
    return f"application: {_cold(fields)}", []


def _cold(fields: Mapping[str, Any]) -> str:
    until = fields["until"]
    if "passes" in until:
        often = f"{until['passes']} passes"
    else:
        often = (f"3 to 7 warm runs, until the relative standard error of {METRICS[until['metric']]} is at most "
                 f"{until['threshold']:.0%}")  # fmt: skip
    return f"{fields['cold_runs']} cold and {often}" if fields["cold_runs"] else often


_WORDS = {"loop": _loop, "soak": _soak, "idle": _idle, "replay": _replay, "application": _application}


def format_seconds(seconds: float) -> str:
    """For people, exact below a minute: `0.7 s`, `5 min`, `2 h 10 min`."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    return format_duration(seconds).removesuffix(" 00 s").removesuffix(" 00 min")
