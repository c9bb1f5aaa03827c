"""What a plan leads to: fio's commands as one could type them, and in words what fio has no part in."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from drivelab.analysis import repeats
from drivelab.fio.job import job_text
from drivelab.plan.cell import COMPOSITE, Cell
from drivelab.plan.plan import Plan
from drivelab.stages.condition import fill_cell
from drivelab.stages.soak import soak_cell
from drivelab.units import format_duration

ENGINE = "io_uring"
"""What is taken unless the host forbids it; then it is libaio."""


def fio_commands(plan: Plan, device: str, capacity_bytes: int, logical_block_bytes: int) -> Iterator[tuple[str, str]]:
    """Each command with what it is for, in the order of execution. Of a loop, those of the first round: the seed of
    the random numbers differs from round to round, nothing else does."""

    def command(cell: Cell, seed: int) -> str:
        job = job_text(cell, device, ENGINE, capacity_bytes, logical_block_bytes, seed)
        words = [f"--{line}" for line in job.splitlines() if "=" in line]
        if cell.slice_s is not None:
            words.append(f"--status-interval={cell.slice_s:g}")
        return shlex.join(["fio", "--name=cell", *words, "--output-format=json+"])

    fill = plan.subject["condition"].get("fill")
    if fill is not None:
        cell = fill_cell(fill, plan.subject["class"]["active_range"], capacity_bytes)
        yield "preconditioning", command(cell, 1)
    for number, step in enumerate(plan.subject["measure"]):
        ((kind, fields),) = step.items()
        if kind == "loop":
            for index, mapping in enumerate(fields.get("cells", [])):
                cell = Cell(**mapping)
                yield f"round 1, {cell.label}", command(cell, plan.seed(f"cells/{number}-round01-cell{index:02d}"))
            if "streams" in fields:
                yield _streams(plan, fields["streams"])
        elif kind == "soak":
            cell = soak_cell(fields, capacity_bytes)
            yield f"soak, {cell.label}", command(cell, plan.seed(f"cells/{number}-soak-part1"))
        elif kind == "idle":
            yield "idle", f"nothing for {format_duration(fields['time_s'])}"
        else:
            yield _replay(plan, fields)


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
    until = fields["until"]
    often = f"passes: {until['passes']}" if "passes" in until else f"warm runs: {repeats.FEWEST} to {repeats.MOST}"
    words = [
        f"the {fields['engine']} engine, {ReplayChoice.from_mapping(fields['choice']).words()}",
        f"cold runs: {fields['cold_runs']}, {often}",
    ]
    if fields["prefill"] == "footprint":
        words.append("blocks that are read are written beforehand")
    if "phase" in fields:
        words.append(f"phase {fields['phase']}, {fields['phase_pass']}")
    return f"replay of {names}", "; ".join(words)
