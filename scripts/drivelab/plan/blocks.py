"""Cells against the logical block of the drive."""

from __future__ import annotations

from drivelab.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.units import format_size


def refuse_small_cells(plan: Plan, logical_block_bytes: int) -> None:
    """Raise UserError if a cell is smaller than the drive's logical block: fio would fail hours later."""
    for step in plan.subject["measure"]:
        for fields in step.values():
            for cell in [*fields.get("cells", []), *([fields["cell"]] if "cell" in fields else [])]:
                if cell["block_size_bytes"] % logical_block_bytes:
                    raise UserError(
                        f"drive '{plan.drive}', {plan.measurement}: block size {format_size(cell['block_size_bytes'])} "
                        f"is no multiple of the drive's logical block of {format_size(logical_block_bytes)}; "
                        "leave it out with 'set' in the study. Nothing was written."
                    )
