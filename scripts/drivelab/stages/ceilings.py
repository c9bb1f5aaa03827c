"""What bounds how much is written in a time, by the link of a real drive and by the model of a virtual one."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import fsum, inf, sqrt

from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.virtual.model import PAGE_BYTES, DriveModel

FIO_START_S = 0.3
"""What fio needs beyond the runtime of a cell, measured."""
FASTEST_MIB_S = {"sata": 560.0, "sas": 2200.0, "pcie": 14000.0}
"""No drive of a transport writes faster, where its link does not say more exactly."""
_FASTEST_OF_ALL_MIB_S = max(FASTEST_MIB_S.values())
_LANE_MIB_S = {"2.5": 236.0, "5.0": 472.0, "8.0": 930.0, "16.0": 1860.0, "32.0": 3720.0, "64.0": 7440.0}
"""Payload of a PCIe lane by its GT/s, less encoding and packets."""
_LINK = re.compile(r"(\d+\.\d+) GT/s.* x(\d+)")
_DEVIATIONS = 5
"""Standard deviations that the share of writes may be off by, where it is drawn for each I/O."""


@dataclass(frozen=True)
class Terms:
    """What the steps of a plan are reckoned with."""

    bytes_s: float
    """Assumed of volumes."""
    fastest_bytes_s: float
    """Bound of each direction; of both together where they share a bus."""
    full_duplex: bool
    commands_s: float
    """Bound of the I/Os."""
    start_s: float
    """What each cell takes beyond its runtime."""

    def both_bytes_s(self, write_share: float) -> float:
        """Bound of reads and writes together."""
        return self.fastest_bytes_s / max(write_share, 1 - write_share) if self.full_duplex else self.fastest_bytes_s


def fastest_mib_s(plan: Plan, transport: str | None, link: str | None) -> float:
    """What bounds the bytes that are written in a time: the link of a real drive, the bus of a virtual one.

    A virtual drive programs slower than that, but a write buffer and an SLC cache take in more for a while.
    """
    if plan.virtual:
        model = model_of(plan)
        return PAGE_BYTES / model.transfer_us * 1e6 / 2**20 if model and model.transfer_us else _FASTEST_OF_ALL_MIB_S
    if (match := _LINK.search(link or "")) is not None and match[1] in _LANE_MIB_S:
        return _LANE_MIB_S[match[1]] * int(match[2])
    return FASTEST_MIB_S.get(transport or "", _FASTEST_OF_ALL_MIB_S)


def model_of(plan: Plan) -> DriveModel | None:
    """The model of a virtual drive whose requests take time."""
    mapping = plan.subject["drive"].get("virtual")
    model = None if mapping is None else DriveModel.from_mapping(plan.drive, mapping)
    return model if model is not None and model.enabled else None


def terms_of(plan: Plan, bandwidth_mib_s: float, fastest_mib_s: float | None) -> Terms:
    """How fast a drive is taken to be, and what it cannot be faster than; without `fastest_mib_s` that is the same.

    In real time the kernel may merge a virtual drive's commands, so that their number bounds nothing.
    """
    simulated = plan.virtual and plan.clock == "virtual"
    model = model_of(plan) if simulated else None
    return Terms(
        bytes_s=bandwidth_mib_s * 2**20,
        fastest_bytes_s=max(fastest_mib_s or 0.0, bandwidth_mib_s) * 2**20,
        full_duplex=not plan.virtual,
        commands_s=1e6 / model.command_us if model is not None and model.command_us else inf,
        start_s=0.0 if simulated else FIO_START_S,
    )


def _workloads(cell: Cell) -> list[Cell]:
    """Of a cell: its own, and the one beside it."""
    alone = replace(cell, beside=None)
    return [alone] if cell.beside is None else [alone, Cell(**cell.beside)]


def in_flight_bytes(cell: Cell) -> float:
    """At the end of its time, at the most; what is in flight then is waited for, and counts."""
    return fsum(one.threads * one.queue_depth * one.largest_block_bytes for one in _workloads(cell))


def fastest_bytes_s(cell: Cell, terms: Terms) -> float:
    """Read and written in a second at the most, in the course of time."""
    if cell.beside is not None:
        return min(terms.both_bytes_s(0.5), fsum(fastest_bytes_s(one, terms) for one in _workloads(cell)))
    limit = inf if cell.rate_iops is None else cell.rate_iops * mean_block_bytes(cell)
    return min(terms.both_bytes_s(1 - cell.read_share / 100), terms.commands_s * cell.largest_block_bytes, limit)


def written_in(seconds: float, cell: Cell, terms: Terms) -> float:
    """At the most, by both workloads where there are two."""
    written = (
        writes_of(seconds * fastest_bytes_s(one, terms) + in_flight_bytes(one), one)[1] for one in _workloads(cell)
    )
    return min(fsum(written), seconds * terms.fastest_bytes_s + in_flight_bytes(cell))


def writes_of(volume: float, cell: Cell) -> tuple[float, float]:
    """Of so many bytes that a workload reads and writes: what it writes, at the least and at the most.

    Whether an I/O reads or writes is drawn for each of them.
    """
    share = 1 - cell.read_share / 100
    off = _DEVIATIONS * sqrt(share * (1 - share) * cell.largest_block_bytes / volume) if volume else 0.0
    return volume * max(share - off, 0.0), volume * min(share + off, 1.0)


def mean_block_bytes(cell: Cell) -> float:
    """Mean size of a cell's I/Os."""
    if cell.block_sizes is not None:
        return fsum(one["block_size_bytes"] * one["share"] for one in cell.block_sizes)
    return (cell.block_size_bytes + (cell.block_size_max_bytes or cell.block_size_bytes)) / 2
