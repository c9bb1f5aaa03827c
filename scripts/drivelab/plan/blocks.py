"""Cells and fills against the logical block of the drive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drivelab.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.protocol.plan_fields import fills
from drivelab.units import format_size


def refuse_small_cells(plan: Plan, logical_block_bytes: int) -> None:
    """Raise UserError if I/O of a plan is no multiple of the drive's logical block: fio would fail hours later.

    Sizes of streams are not looked at: they are rounded up to the block when the trace is there.
    """
    for what, size in _sizes(plan.subject):
        if size % logical_block_bytes:
            raise UserError(
                f"drive '{plan.drive}', {plan.measurement}: {what} {format_size(size)} is no multiple of the drive's "
                f"logical block of {format_size(logical_block_bytes)}; leave it out with 'set' in the study. "
                "Nothing was written."
            )


def _sizes(subject: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Everything that says where I/Os begin or how long they are, in bytes, with what it is called."""
    for one in fills(subject["condition"]):
        yield "the fill's block size", one["block_size_bytes"]
    for step in subject["measure"]:
        for fields in step.values():
            for cell in [*fields.get("cells", []), *([fields["cell"]] if "cell" in fields else [])]:
                yield from _of_cell(cell)


def _of_cell(cell: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    if "streams" not in cell:
        yield "block size", cell["block_size_bytes"]
    for one in cell.get("block_sizes", ()):
        yield "block size", one["block_size_bytes"]
    if "beside" in cell:
        yield "block size", cell["beside"]["block_size_bytes"]
    yield "alignment", cell.get("alignment_bytes", 0)
    yield "alignment offset", cell.get("alignment_offset_bytes", 0)
