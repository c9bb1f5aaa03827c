"""The fio commands that a plan leads to, as one could type them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from drivelab.fio.job import job_text
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.stages.condition import fill_cell
from drivelab.stages.soak import soak_cell

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
            for index, mapping in enumerate(fields["cells"]):
                cell = Cell(**mapping)
                yield f"round 1, {cell.label}", command(cell, plan.seed(f"cells/{number}-round01-cell{index:02d}"))
        elif kind == "soak":
            cell = soak_cell(fields, capacity_bytes)
            yield f"soak, {cell.label}", command(cell, plan.seed(f"cells/{number}-soak-part1"))
        else:
            yield (
                f"replay of {plan.subject['trace']['name']}",
                f"fio with the trace as iologs, timing {fields['timing']}; they are written just before each replay",
            )
