"""Describe what a protocol does to a drive, step by step, for users who choose or write a protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import prod
from typing import Any

from drivelab.campaign.estimate import Estimate, Trace, estimate, rest_estimate
from drivelab.core.units import counted, format_amount, format_duration, format_size, format_span
from drivelab.plan.cell import Cell, fills, rounds_at_least, rounds_at_most
from drivelab.plan.fitting import refuse_unfit
from drivelab.plan.grammar import Resolved
from drivelab.plan.loops import load_words
from drivelab.plan.plan import Plan
from drivelab.run.fill import MOST_RESTS, fill_cell, probes

METRICS = {"iops": "IOPS", "bandwidth_mib_s": "bandwidth", "mean_latency_us": "mean latency", "duration_s": "duration",
           "access_time_us": "access time", "score": "score"}  # fmt: skip


_OF_A_GRID = ("block_size_bytes", "read_share", "threads", "queue_depth")
"""Fields that may differ between the cells of a grid."""
_FEW = 6
"""Fewer cells than this are listed individually."""


@dataclass(frozen=True)
class Subject:
    """The drive for which a protocol is described."""

    name: str
    capacity_bytes: int
    write_mib_s: float
    """Bandwidth assumed for volumes."""
    over_provisioning: float
    traces: tuple[Trace, ...] = ()
    """Traces of replays; without them, the time of replays is unknown."""
    logical_block_bytes: int = 512
    fastest_mib_s: float | None = None
    """Upper bound of the write bandwidth; None: `write_mib_s`."""
    virtual: Mapping[str, Any] | None = None
    """The model of a virtual drive."""


@dataclass(frozen=True)
class Part:
    """One step, conditioning included."""

    words: str
    details: tuple[str, ...]
    estimate: Estimate | None
    """None if it depends on an unknown trace or application."""

    @property
    def time(self) -> str:
        if self.estimate is None:
            return "unknown"
        return format_span(self.estimate.least_s, self.estimate.most_s, format_seconds)

    @property
    def written(self) -> str:
        if self.estimate is None:
            return "unknown"
        return format_span(self.estimate.least_bytes, self.estimate.most_bytes, format_amount)


def procedure(resolved: Resolved, subject: Subject) -> tuple[Part, ...]:
    """Return the parts of one measurement in the order of execution.

    Raises UserError, as for a study, if the drive cannot carry out the protocol.
    """
    virtual = {} if subject.virtual is None else {"virtual": subject.virtual}
    drive = {"over_provisioning": subject.over_provisioning, **virtual}
    context = {"drive": subject.name, "measurement": "this protocol"}
    plan = Plan({"drive": drive, "clock": "wall", **resolved.steps}, context)
    refuse_unfit(plan, subject.capacity_bytes, subject.logical_block_bytes)
    return (*_condition(plan, subject), *_measure(plan, subject))


def total(parts: Sequence[Part]) -> Part:
    """Return the total of all parts; its text says if unknown parts are left out."""
    known = [part.estimate for part in parts if part.estimate is not None]
    rest = "" if len(known) == len(parts) else ", without the unknown parts"
    return Part(f"total{rest}", (), sum(known, Estimate()))


def _condition(plan: Plan, subject: Subject) -> Iterator[Part]:
    condition = plan.subject["condition"]
    if condition.get("scenario_required"):
        yield Part("host settings must match the scenario, or the measurement does not start", (), Estimate())
    bare = {"purge": condition["purge"], **{key: condition[key] for key in ("settle_s",) if key in condition}}
    if condition["purge"] == "none":
        yield Part("no purge: the drive keeps its state", (), Estimate())
    else:
        settle = f", then {format_seconds(condition['settle_s'])} of rest" if "settle_s" in condition else ""
        yield Part(f"purge{settle}", (), _estimate(plan, subject, {**bare, "purge": "auto"}))
    for fill in fills(condition):
        yield Part(_fill(fill), (), _estimate(plan, subject, {"purge": "none", "fill": fill}))
    if "rest_s" in condition:
        first: Cell | None = None
        if probes(plan.subject):
            first = fill_cell(fills(condition)[0], plan, subject.capacity_bytes)
        times = f", up to {MOST_RESTS} times, until a short write is as fast as on the empty drive" if first else ""
        words = f"flush of the drive's cache, then {format_seconds(condition['rest_s'])} of rest{times}"
        yield Part(words, (), rest_estimate(condition, first, subject.capacity_bytes))


def _fill(fill: Mapping[str, Any]) -> str:
    trims = fill.get("operation")
    workload = Cell(fill["pattern"], 0, fill["block_size_bytes"], 1, fill["queue_depth"], operation=trims).label
    span = f"{fill['range_share']:.0%} of the active range" if "range_share" in fill else "the active range"
    if "range_bytes" in fill:
        span = f"the first {format_amount(fill['range_bytes'])}"
    if "raw_capacity_multiple" in fill:
        within = "" if span == "the active range" else f", within {span}"
        return f"fill: {workload}, {fill['raw_capacity_multiple']:g} x the raw capacity{within}"
    return f"fill: {workload}, {fill['capacity_multiple']:g} x {span}"


def _measure(plan: Plan, subject: Subject) -> Iterator[Part]:
    for number, step in enumerate(plan.subject["measure"]):
        (kind,) = step
        known = kind != "application" and (kind != "replay" or subject.traces)
        title, details = describe(step)
        estimated = _estimate(plan, subject, {"purge": "none"}, step) if known else None
        yield Part(f"step {number + 1}, {title}", tuple(details), estimated)


def describe(step: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return what a step does, and details."""
    ((kind, fields),) = step.items()
    title, details = _DESCRIBE[kind](fields)
    if "phase" in fields:
        title = f"[{fields['phase']} {fields.get('phase_value', fields.get('phase_pass'))}] {title}"
    return title, details


def _estimate(plan: Plan, subject: Subject, condition: Mapping[str, Any], *steps: Mapping[str, Any]) -> Estimate:
    """Estimate a part of the plan."""
    part = replace(plan, subject={**plan.subject, "condition": condition, "measure": steps})
    return estimate(part, subject.capacity_bytes, subject.write_mib_s, subject.traces, subject.fastest_mib_s)


def _loop(fields: Mapping[str, Any]) -> tuple[str, list[str]]:
    until = fields["until"]
    least, most = rounds_at_least(until), rounds_at_most(until)
    rounds = f"{least} rounds" if least == most else f"{least} to {most} rounds"
    if "cold_rounds" in fields:
        rounds = f"{fields['cold_rounds']} uncounted and {rounds}"
    if "streams" in fields:
        content, details = _streams(fields["streams"])
    else:
        cells = fields["cells"]
        runtimes_s = {cell["runtime_s"] for cell in cells}
        each = f" of {format_seconds(runtimes_s.pop())}" if len(runtimes_s) == 1 else ""
        content = f"{counted(len(cells), 'cell')}{each}"
        details = _grids(cells)
    order = ", all rounds of a cell before the next cell" if fields.get("order") == "cells" else ""
    if "pause_s" in fields:
        order += f", {format_seconds(fields['pause_s'])} of rest after each cell"
    if "duty_cycle" in fields:
        order += f", active {fields['duty_cycle']:.0%} of the time"
    return f"loop: {rounds} of {content}{order}{_loop_until(until)}", details


def _grids(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Describe the cells in a line; cells that are all combinations of a grid's fields are described as a grid."""
    same = [tuple(sorted((k, str(v)) for k, v in cell.items() if k not in _OF_A_GRID)) for cell in cells]
    groups = [[cell for _, cell in group] for _, group in groupby(zip(same, cells, strict=True), lambda pair: pair[0])]
    return ["; ".join(_grid(group) or "; ".join(map(_cell, group)) for group in groups)]


def _grid(cells: Sequence[Mapping[str, Any]]) -> str | None:
    """Describe the cells as a grid; None if they are few, or not all combinations of their values."""
    values: dict[str, list[Any]] = {key: list(dict.fromkeys(cell.get(key) for cell in cells)) for key in _OF_A_GRID}
    if (
        len(cells) < _FEW
        or prod(map(len, values.values())) != len(cells)
        or any(None in column for column in values.values())
    ):
        return None
    kind, size, *_ = _cell(cells[0], demand=False).partition(", ")[0].split(" ")
    sizes, mix = values["block_size_bytes"], " mix" if "block_sizes" in cells[0] else ""
    parts = [
        f"{kind} {'/'.join(map(format_size, sizes)) if len(sizes) > 1 else size + mix}",
        f"reads {'/'.join(map(str, values['read_share']))} %",
        f"threads {'/'.join(map(str, values['threads']))}",
        f"depth {'/'.join(map(str, values['queue_depth']))}",
    ]
    after = _cell(cells[0], demand=False).partition(", ")[2]
    return " x ".join(parts) + (f", {after}" if after else "")


def _loop_until(until: Mapping[str, Any]) -> str:
    if "track" in until:
        return f", until steady state of {' and '.join(_tracked(variable) for variable in until['track'])}"
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
    return f"each of the trace's {streams['most']} most frequent streams", [", ".join(demand)]


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


ISSUED = {"polled": "polling", "kernel-thread": "a kernel thread", "nvme": "NVMe commands"}


def _replay(fields: Mapping[str, Any]) -> tuple[str, list[str]]:
    from drivelab.plan.replay_choice import ReplayChoice  # imports pyarrow, which is slow; only replays need it

    issued = f", issued by {' and '.join(ISSUED[way] for way in fields['issued'])}" if "issued" in fields else ""
    prefill = ", after a write of all blocks that it reads" if fields["prefill"] == "footprint" else ""
    return f"replay: {_runs(fields)}, {ReplayChoice.from_mapping(fields['choice']).words()}{issued}{prefill}", []


def _application(fields: Mapping[str, Any]) -> tuple[str, list[str]]:
    return f"application: {_runs(fields)}", []


def _runs(fields: Mapping[str, Any]) -> str:
    until = fields["until"]
    if "passes" in until:
        warm = f"{until['passes']} passes"
    else:
        warm = (f"3 to 7 warm runs, until the relative standard error of {METRICS[until['metric']]} is at most "
                f"{until['threshold']:.0%}")  # fmt: skip
    return f"{fields['cold_runs']} cold and {warm}" if fields["cold_runs"] else warm


def _load(fields: Mapping[str, Any]) -> tuple[str, list[str]]:
    runtime, rates = format_seconds(fields["runtime_s"]), fields["rates"]
    details = (
        f"from {rates['start_iops']:,.0f} IOPS by a factor of {rates['factor']:g} up to {rates['most_iops']:,.0f} "
        f"IOPS, then bisection to {100 * rates['resolution']:.3g} %"
    )
    return f"load: {load_words(fields)}, {runtime} for each rate, up to {fields['tries']} times", [details]


_DESCRIBE = {
    "loop": _loop, "soak": _soak, "idle": _idle, "replay": _replay, "application": _application, "load": _load,
}  # fmt: skip


def format_seconds(seconds: float) -> str:
    """Format a duration, exactly below a minute: `0.7 s`, `5 min`, `2 h 10 min`."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    return format_duration(seconds).removesuffix(" 00 s").removesuffix(" 00 min")
