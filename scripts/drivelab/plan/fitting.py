"""Check a plan against its drive, and refuse what would fail hours later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.units import format_size
from drivelab.plan.cell import Cell, beside_of, cells_of, fills
from drivelab.plan.file_system import BLOCK_BYTES, LEAST_BYTES
from drivelab.plan.plan import Plan
from drivelab.plan.ranges import parts_of
from drivelab.plan.subject_kinds import KINDS, READ_ONLY

LEAST_SLICE_S = 1.0
"""Shortest status interval of fio (its manual, --status-interval)."""


class UnfitError(UserError):
    """The drive cannot carry out the plan; `fault` is the message without its remedy in the study."""

    def __init__(self, plan: Plan, fault: str, remedy: str = "") -> None:
        self.fault = f"drive '{plan.drive}', {plan.measurement}: {fault}"
        super().__init__(f"{self.fault}{remedy and '; '}{remedy}. Nothing was written.")


def refuse_unfit(plan: Plan, capacity_bytes: int, logical_block_bytes: int, *, trims: bool = True) -> None:
    """Raise UnfitError if the drive cannot carry out a plan.

    The reasons: an I/O size is not a multiple of the logical block, the range is larger than the drive or too small for
    the threads, slices in real time are shorter than fio allows, or I/Os trim and the drive does not (`trims`). Stream
    sizes are not checked: drivelab rounds them up to the block when it reads the trace. On a file system, the file is
    the drive.
    """
    if (file_system := plan.file_system) is not None:
        if capacity_bytes < (least_bytes := LEAST_BYTES[file_system.type]):
            raise UnfitError(plan, f"{file_system.type} needs at least {format_size(least_bytes)}, and the drive has "
                        f"{format_size(capacity_bytes)}", "use a larger drive or another file system")  # fmt: skip
        capacity_bytes, logical_block_bytes = file_system.file_bytes(capacity_bytes), BLOCK_BYTES
    if not trims and _trims(plan.subject):
        raise UnfitError(plan, "its I/Os trim, but the drive, or the kernel's path to it, does not support TRIM",
                    "leave this protocol out of the study")  # fmt: skip
    for name, size in _sizes(plan.subject):
        if size % logical_block_bytes:
            raise UnfitError(plan, f"{name} {format_size(size)} is not a multiple of the drive's logical block of "
                        f"{format_size(logical_block_bytes)}", "remove it with 'set' in the study")  # fmt: skip
    for mapping in _cells(plan.subject):
        cell = Cell(**{"threads": 1, "queue_depth": 1, **mapping})
        try:
            parts_of(cell, capacity_bytes, logical_block_bytes)
        except UserError as error:
            raise UnfitError(plan, str(error)) from None
        if plan.clock == "wall" and cell.slice_s is not None and cell.slice_s < LEAST_SLICE_S:
            raise UnfitError(plan, f"slices of {cell.slice_s:g} s are shorter than fio supports in real time",
                        f"make them {LEAST_SLICE_S:g} s or longer")  # fmt: skip


def refuse_clock(plan: Plan, reason: str | None, study: Path) -> None:
    """Raise UserError if a plan for the virtual clock needs real time; `reason`: why the clock is virtual."""
    if plan.clock != "virtual":
        return
    remedy = "Run the study as root where virtual drives run in real time ('clock: wall'), or use a real drive"
    if plan.file_system is not None:
        raise UserError(
            f"{study}: '{plan.drive}' is a file system, but virtual drives run on the virtual clock here ({reason}). "
            f"No kernel takes part in simulated time, so nothing can be mounted. {remedy}."
        )


def refuse_kind(plan: Plan) -> None:
    """Raise UnfitError if the plan does what its kind of subject forbids.

    A file takes loops, soaks and idle times, also one on a file system that drivelab makes; a subject for reading only
    takes those of them that do not write.
    """
    if "array_state" in plan.subject and not KINDS[plan.kind].has_members:
        raise UnfitError(plan, f"it has no array that could be {plan.subject['array_state']}",
                         "remove 'array_state'")  # fmt: skip
    destroyed, on_file_system = KINDS[plan.kind].destroyed, "file_system" in plan.subject
    if destroyed and not on_file_system:
        return
    if not destroyed and on_file_system:
        raise UnfitError(plan, f"drivelab makes no file system on the kind '{plan.kind}'",
                         "name a drive, or leave this subject out with 'exclude'")  # fmt: skip
    what = "a file system" if on_file_system else f"the kind '{plan.kind}'"
    if not destroyed and plan.subject["condition"]["purge"] != "none":
        raise UnfitError(plan, f"the protocol purges, and a subject of the kind '{plan.kind}' cannot be purged",
                         "choose a protocol without a purge, such as quick")  # fmt: skip
    steps = {kind for step in plan.subject["measure"] for kind in step}
    streams = any("streams" in fields for step in plan.subject["measure"] for fields in step.values())
    if streams or not steps <= {"loop", "soak", "idle"}:
        raise UnfitError(plan, f"replays, loads and applications need a drive, not {what}",
                         "leave this measurement out for this subject")  # fmt: skip
    if _trims(plan.subject):
        raise UnfitError(plan, f"its I/Os trim, which {what} cannot",
                         "leave this measurement out for this subject")  # fmt: skip
    filled = fills(plan.subject["condition"])
    workloads = [workload for cell in _cells(plan.subject) for workload in (cell, *beside_of(cell))]
    if plan.kind == READ_ONLY.name and (filled or any(workload["read_share"] < 100 for workload in workloads)):
        raise UnfitError(plan, "the protocol writes, and the sheet lists this device for reading only",
                         "choose a protocol that only reads, such as quick-reads")  # fmt: skip
    if plan.kind != READ_ONLY.name and not filled and any(workload["read_share"] > 0 for workload in workloads):
        raise UnfitError(plan, "it reads without a fill, and blocks of a file that were never written are not read "
                         "from the drive", "choose a protocol with a fill")  # fmt: skip


def _trims(subject: Mapping[str, Any]) -> bool:
    """Return whether I/Os discard blocks; a purge may."""
    cells = [*fills(subject["condition"]), *_cells(subject)]
    return any("operation" in one for cell in cells for one in (cell, *beside_of(cell)))


def _cells(subject: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for step in subject["measure"]:
        for fields in step.values():
            yield from cells_of(fields)


def _sizes(subject: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the name and bytes of every size that sets where I/Os begin or how long they are."""
    for fill in fills(subject["condition"]):
        yield "the fill's block size", fill["block_size_bytes"]
    for cell in _cells(subject):
        yield from _of_cell(cell)


def _of_cell(cell: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    yield "block size", cell["block_size_bytes"]
    for entry in cell.get("block_sizes", ()):
        yield "block size", entry["block_size_bytes"]
    for other in beside_of(cell):
        yield "block size", other["block_size_bytes"]
    yield "alignment", cell.get("alignment_bytes", 0)
    yield "alignment offset", cell.get("alignment_offset_bytes", 0)
