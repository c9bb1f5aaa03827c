"""Show what a plan does: each step, with its fio commands ready to type."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from drivelab.campaign.procedure import describe
from drivelab.core.units import format_duration
from drivelab.fio.job import job_text
from drivelab.plan.cell import Cell
from drivelab.plan.file_system import BLOCK_BYTES
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
    """Yield the purpose and text of each command, in the order of execution; the text is empty without a command.

    A loop gives the commands of its first round; later rounds differ only in the random seed. A cell at a point has no
    command in advance.
    """
    if "traces" in plan.subject:
        yield f"traces: {', '.join(trace['name'] for trace in plan.subject['traces'])}", ""
    if "application" in plan.subject:
        yield f"application: {plan.subject['application']['name']}, on a file system on the drive", ""
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
        title, details = describe(step)
        yield f"step {number + 1}, {title}", "" if "cells" in fields else "; ".join(details)
        if kind == "loop":
            yield from _loop(plan, number, fields, command)
        elif kind == "soak":
            yield _soak(plan, number, fields, capacity_bytes, command)


def _arguments(job: str) -> Iterator[str]:
    """Yield a job file's lines as fio's arguments; `--name` starts each section."""
    for line in job.splitlines():
        yield f"--name={line[1:-1]}" if line.startswith("[") else f"--{line}"


def _loop(plan: Plan, step: int, fields: Mapping[str, Any], command: _Command) -> Iterator[tuple[str, str]]:
    first = "cold round 1" if fields.get("cold_rounds") else "round 1"
    for index, mapping in enumerate(fields.get("cells", [])):
        if _at_point(fields, mapping):
            yield f"{first}, {_workload(mapping)}", _point(fields["point"])
        else:
            cell = Cell(**mapping)
            yield f"{first}, {cell.label}", command(cell, plan.seed(f"cells/{step}-round01-cell{index:02d}"))


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
