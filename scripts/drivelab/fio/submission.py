"""Refuse cells whose way of submitting I/Os this host or drive does not support, before fio starts."""

from __future__ import annotations

import resource

from drivelab.core import capabilities
from drivelab.core.errors import UserError
from drivelab.core.units import format_amount
from drivelab.drives.nvme_commands import can_crash
from drivelab.fio.job import RING_ENGINE
from drivelab.plan.cell import Cell
from drivelab.plan.expressible import workloads_of


def refuse_submission(cell: Cell, engine: str, label: str, *, polls: bool, may_lock: bool | None = None) -> None:
    """Raise UserError if I/Os cannot be submitted as the cell asks.

    `polls` says whether the drive has poll queues, `may_lock` whether this process may lock any amount of memory (by
    default whether it has the capability).
    """
    if may_lock is None:
        may_lock = capabilities.has(capabilities.IPC_LOCK)
    if (cell.registered or cell.polled or cell.nvme) and engine != RING_ENGINE:
        raise UserError(
            f"{label}: cell {cell.label} needs {RING_ENGINE}, which the kernel or a container forbids here. Allow it "
            "(sysctl kernel.io_uring_disabled=0), or remove 'registered', 'polled' and 'nvme' from the protocol."
        )
    if cell.polled and not polls:
        raise UserError(
            f"{label} has no poll queues, but cell {cell.label} polls. Load the nvme module with poll_queues above 0, "
            "or remove 'polled' from the protocol."
        )
    if can_crash(cell.total_threads, polled=bool(cell.polled), nvme=bool(cell.nvme)):
        raise UserError(
            f"{label}: cell {cell.label} polls for NVMe commands in {cell.total_threads} threads, which can crash this "
            "kernel. Use Linux 6.5 or newer, one thread, or remove 'polled' or 'nvme' from the protocol."
        )
    limit_bytes = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if cell.registered and not may_lock and resource.RLIM_INFINITY != limit_bytes < (need := _locked_bytes(cell)):
        raise UserError(
            f"{label}: cell {cell.label} registers buffers of up to {format_amount(need)}, but this user may lock "
            f"{format_amount(limit_bytes)} of memory. Raise the limit (ulimit -l), run as root, or remove 'registered'."
        )


def _locked_bytes(cell: Cell) -> int:
    """Return the size of the buffers of a cell and of the next one, which may be prepared meanwhile."""
    return 2 * sum(part.threads * part.queue_depth * part.largest_block_bytes for part in workloads_of(cell))
