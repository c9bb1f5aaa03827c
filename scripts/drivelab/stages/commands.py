"""What a plan leads to: fio's commands as one could type them, and in words what fio has no part in."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from drivelab.fio.job import job_text
from drivelab.plan.cell import COMPOSITE, Cell
from drivelab.plan.plan import Plan
from drivelab.protocol.plan_fields import pause_s, rounds_at_least, rounds_at_most
from drivelab.stages.fill import passes
from drivelab.stages.soak import soak_cell
from drivelab.units import format_duration

ENGINE = "io_uring"
"""What is taken unless the host forbids it; then it is libaio."""


_Command = Callable[[Cell, int], str]


def fio_commands(plan: Plan, device: str, capacity_bytes: int, logical_block_bytes: int) -> Iterator[tuple[str, str]]:
    """Each command with what it is for, in the order of execution. Of a loop, those of the first round: the seed of
    the random numbers differs from round to round, nothing else does. What runs at a point has no command beforehand.
    """

    def command(cell: Cell, seed: int) -> str:
        words = list(_words(job_text(cell, device, ENGINE, capacity_bytes, logical_block_bytes, seed)))
        if cell.slice_s is not None:
            words.append(f"--status-interval={cell.slice_s:g}")
        return shlex.join(["fio", *words, "--output-format=json+"])

    for one in passes(plan, capacity_bytes):
        yield "preconditioning", command(one.cell, one.seed)
    if "rest_s" in (condition := plan.subject["condition"]):
        yield "rest", f"the drive flushes its cache, then nothing for {format_duration(condition['rest_s'])}"
    if "simultaneous" in plan.subject:
        serials = ", ".join(plan.subject["simultaneous"])
        yield "at the same time", f"the drives with the serials {serials} begin each step together"
    for number, step in enumerate(plan.subject["measure"]):
        ((kind, fields),) = step.items()
        if kind == "loop":
            yield from _loop(plan, number, fields, command)
        elif kind == "soak":
            yield _soak(plan, number, fields, capacity_bytes, command)
        elif kind == "idle":
            yield "idle", f"nothing for {format_duration(fields['time_s'])}"
        elif kind == "application":
            yield _application(plan, fields)
        else:
            yield _replay(plan, fields)


def _words(job: str) -> Iterator[str]:
    """A job text as fio's arguments, of which each section begins with its name."""
    for line in job.splitlines():
        yield f"--name={line[1:-1]}" if line.startswith("[") else f"--{line}"


def _loop(plan: Plan, step: int, fields: Mapping[str, Any], command: _Command) -> Iterator[tuple[str, str]]:
    if "streams" in fields:
        yield _streams(plan, fields["streams"])
    first = "cold round 1" if fields.get("cold_rounds") else "round 1"
    for index, mapping in enumerate(fields.get("cells", [])):
        if _at_point(fields, mapping):
            yield f"{first}, {_workload(mapping)}", _point(fields["point"])
        else:
            cell = Cell(**mapping)
            yield f"{first}, {cell.label}", command(cell, plan.seed(f"cells/{step}-round01-cell{index:02d}"))
    pauses = sorted({pause_s(fields, one["runtime_s"]) for one in fields.get("cells", [fields.get("streams")])})
    if pauses != [0.0]:
        span = " to ".join(f"{one:g} s" for one in dict.fromkeys((pauses[0], pauses[-1])))
        yield "pause", f"no I/O for {span} after each cell"


def _soak(plan: Plan, step: int, fields: Mapping[str, Any], capacity_bytes: int, command: _Command) -> tuple[str, str]:
    if _at_point(fields, fields["cell"]):
        return f"soak, {_workload(fields['cell'])}", _point(fields["point"])
    cell = soak_cell(fields, capacity_bytes)
    return f"soak, {cell.label}", command(cell, plan.seed(f"cells/{step}-soak-part1"))


def _at_point(fields: Mapping[str, Any], cell: Mapping[str, Any]) -> bool:
    """Whether the threads or the depth of a cell are only known once an earlier loop is measured."""
    return "point" in fields and not {"threads", "queue_depth"} <= cell.keys()


def _workload(mapping: Mapping[str, Any]) -> str:
    return Cell(**{"threads": 1, "queue_depth": 1, **mapping}).workload


def _point(point: Mapping[str, Any]) -> str:
    limit = f"{point['response_time_us'] / 1000:g} ms"
    return (
        f"threads and queue depth as step {point['step'] + 1} shows them to be those of {point['name'].upper()} IOPS "
        f"below {limit}"
    )


def _application(plan: Plan, fields: Mapping[str, Any]) -> tuple[str, str]:
    name = plan.subject["application"]["name"]
    return f"application {name}", f"on a file system on the drive; {_often(fields)}"


def _streams(plan: Plan, streams: Mapping[str, Any]) -> tuple[str, str]:
    what = "a composite" if streams["kind"] == COMPOSITE else "each"
    demand = ", ".join(f"T{t}Q{q}" for t in streams["threads"] for q in streams["queue_depth"])
    return (
        f"round 1, streams of {plan.subject['traces'][0]['name']}",
        f"{what} of the {streams['most']} most frequent streams, found in the trace when it is there, at {demand}",
    )


def _replay(plan: Plan, fields: Mapping[str, Any]) -> tuple[str, str]:
    from drivelab.replay.choice import ReplayChoice  # with pyarrow, which plans without a replay must not wait for

    names = ", ".join(one["name"] for one in plan.subject["traces"])
    choice = ReplayChoice.from_mapping(fields["choice"]).words()
    words = [f"the {fields['engine']} engine, {choice}", _often(fields)]
    if fields["prefill"] == "footprint":
        words.append("blocks that are read are written beforehand")
    if "phase" in fields:
        words.append(f"phase {fields['phase']}, {fields['phase_pass']}")
    return f"replay of {names}", "; ".join(words)


def _often(fields: Mapping[str, Any]) -> str:
    least, most = rounds_at_least(fields["until"]), rounds_at_most(fields["until"])
    runs = f"passes: {most}" if "passes" in fields["until"] else f"warm runs: {least} to {most}"
    return f"cold runs: {fields['cold_runs']}, {runs}"
