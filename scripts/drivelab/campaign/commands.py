"""Show what a plan does: fio commands ready to type, and a description of each step without fio."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from drivelab.core.units import format_duration
from drivelab.fio.job import job_text
from drivelab.plan.cell import Cell, pause_s, rounds_at_least, rounds_at_most
from drivelab.plan.file_system import BLOCK_BYTES
from drivelab.plan.loops import load_words
from drivelab.plan.plan import Plan
from drivelab.run.file_system_device import arguments as mkfs_arguments
from drivelab.run.fill import MOST_RESTS, passes, probe_cell, probes
from drivelab.run.soak import soak_cell

ENGINE = "io_uring"
"""The default ioengine; libaio replaces it where the host forbids io_uring."""
_MOUNT = "/mnt"
"""Stands for drivelab's mount point."""


_Command = Callable[[Cell, int], str]


def fio_commands(plan: Plan, device: str, capacity_bytes: int, logical_block_bytes: int) -> Iterator[tuple[str, str]]:
    """Yield the purpose and text of each command, in the order of execution.

    A loop gives the commands of its first round; later rounds differ only in the random seed. A cell at a point has no
    command in advance.
    """

    if "array_state" in plan.subject:
        yield "array", f"must be {plan.subject['array_state']} when the measurement starts; drivelab fails no member"
    file_system = plan.file_system
    if file_system is not None:
        path = shlex.join([f"mkfs.{file_system.type}", *mkfs_arguments(file_system), device])
        options = f"-o {','.join(file_system.mount)} " if file_system.mount else ""
        yield "file system", f"{path} && mount -t {file_system.type} {options}{device} {_MOUNT}"
        capacity_bytes, logical_block_bytes = file_system.file_bytes(capacity_bytes), BLOCK_BYTES
        device = f"{_MOUNT}/file"

    def command(cell: Cell, seed: int) -> str:
        on_file = file_system is not None
        path = f"{device}-of-commits" if on_file and cell.synchronous else device
        job = job_text(cell, path, ENGINE, capacity_bytes, logical_block_bytes, seed, file=on_file)
        arguments = list(_arguments(job))
        if cell.slice_s is not None:
            arguments.append(f"--status-interval={cell.slice_s:g}")
        return shlex.join(["fio", *arguments, "--output-format=json+"])

    condition, fills = plan.subject["condition"], list(passes(plan, capacity_bytes))
    probe = command(probe_cell(fills[0].cell, capacity_bytes), 1) if probes(plan.subject) else None
    if probe is not None:
        yield "a short write, to compare with", probe
    for fill in fills:
        yield "preconditioning", command(fill.cell, fill.seed)
    if "rest_s" in condition:
        yield "rest", f"flush the drive's cache, then no I/O for {format_duration(condition['rest_s'])}"
    if probe is not None:
        yield f"again; if it is slower, up to {MOST_RESTS - 1} more rests", probe
    if "simultaneous" in plan.subject:
        serials = ", ".join(plan.subject["simultaneous"])
        yield "at the same time", f"the drives with the serials {serials} start each step together"
    for number, step in enumerate(plan.subject["measure"]):
        ((kind, fields),) = step.items()
        if kind == "loop":
            yield from _loop(plan, number, fields, command)
        elif kind == "soak":
            yield _soak(plan, number, fields, capacity_bytes, command)
        elif kind == "idle":
            yield "idle", f"no I/O for {format_duration(fields['time_s'])}"
        elif kind == "application":
            yield _application(plan, fields)
        elif kind == "load":
            yield "load", load_words(fields)
        else:
            yield _replay(plan, fields)


def _arguments(job: str) -> Iterator[str]:
    """Yield a job file's lines as fio's arguments; `--name` starts each section."""
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
    pauses_s = sorted({pause_s(fields, cell["runtime_s"]) for cell in fields.get("cells", [fields.get("streams")])})
    if pauses_s != [0.0]:
        span = " to ".join(f"{seconds:g} s" for seconds in dict.fromkeys((pauses_s[0], pauses_s[-1])))
        yield "pause", f"no I/O for {span} after each cell"


def _soak(plan: Plan, step: int, fields: Mapping[str, Any], capacity_bytes: int, command: _Command) -> tuple[str, str]:
    if _at_point(fields, fields["cell"]):
        return f"soak, {_workload(fields['cell'])}", _point(fields["point"])
    cell = soak_cell(fields, capacity_bytes)
    return f"soak, {cell.label}", command(cell, plan.seed(f"cells/{step}-soak-part1"))


def _at_point(fields: Mapping[str, Any], cell: Mapping[str, Any]) -> bool:
    """Return whether an earlier loop determines the threads or the queue depth of a cell."""
    return "point" in fields and not {"threads", "queue_depth"} <= cell.keys()


def _workload(mapping: Mapping[str, Any]) -> str:
    return Cell(**{"threads": 1, "queue_depth": 1, **mapping}).workload


def _point(point: Mapping[str, Any]) -> str:
    limit = f"{point['response_time_us'] / 1000:g} ms"
    return (
        f"the threads and queue depth at which step {point['step'] + 1} reaches {point['name'].upper()} IOPS "
        f"below {limit}"
    )


def _application(plan: Plan, fields: Mapping[str, Any]) -> tuple[str, str]:
    name = plan.subject["application"]["name"]
    return f"application {name}", f"on a file system on the drive; {_runs(fields)}"


def _streams(plan: Plan, streams: Mapping[str, Any]) -> tuple[str, str]:
    demand = ", ".join(f"T{t}Q{q}" for t in streams["threads"] for q in streams["queue_depth"])
    return (
        f"round 1, streams of {plan.subject['traces'][0]['name']}",
        f"each of the {streams['most']} most frequent streams, read from the trace at run time, at {demand}",
    )


def _replay(plan: Plan, fields: Mapping[str, Any]) -> tuple[str, str]:
    from drivelab.plan.replay_choice import ReplayChoice  # imports pyarrow, which is slow; only replays need it

    names = ", ".join(trace["name"] for trace in plan.subject["traces"])
    choice = ReplayChoice.from_mapping(fields["choice"]).words()
    parts = [f"the native engine, {choice}", _runs(fields)]
    if fields["prefill"] == "footprint":
        parts.append("blocks that the trace reads are written beforehand")
    if "phase" in fields:
        parts.append(f"phase {fields['phase']}, {fields['phase_pass']}")
    return f"replay of {names}", "; ".join(parts)


def _runs(fields: Mapping[str, Any]) -> str:
    least, most = rounds_at_least(fields["until"]), rounds_at_most(fields["until"])
    runs = f"passes: {most}" if "passes" in fields["until"] else f"warm runs: {least} to {most}"
    return f"cold runs: {fields['cold_runs']}, {runs}"
