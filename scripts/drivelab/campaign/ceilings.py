"""Upper bounds of the bytes written in a time: by a real drive's link, by a virtual drive's model."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import fsum, inf, sqrt

from drivelab.plan.cell import TRIM, Cell
from drivelab.plan.plan import Plan
from drivelab.virtual.model import PAGE_BYTES, DriveModel

FIO_START_S = 0.3
"""Measured time that fio needs in addition to the runtime of a cell."""
FASTEST_MIB_S = {"sata": 560.0, "sas": 2200.0, "pcie": 14000.0}
"""Highest write bandwidth by transport, used when the link gives no exact figure."""
_FASTEST_OF_ALL_MIB_S = max(FASTEST_MIB_S.values())
_LANE_MIB_S = {"2.5": 236.0, "5.0": 472.0, "8.0": 930.0, "16.0": 1860.0, "32.0": 3720.0, "64.0": 7440.0}
"""Payload bandwidth of a PCIe lane by its GT/s, without encoding and packet overhead."""
_LINK = re.compile(r"(\d+\.\d+) GT/s.* x(\d+)")
_DEVIATIONS = 5
"""Standard deviations that the share of writes may differ by, as fio draws the direction of each I/O."""


@dataclass(frozen=True)
class Terms:
    """Assumed rates and bounds for the estimate of a plan's steps."""

    bytes_s: float
    """Assumed write bandwidth, for the time that a volume takes."""
    fastest_bytes_s: float
    """Upper bound of each direction; of reads and writes together on a shared bus."""
    full_duplex: bool
    commands_s: float
    """Upper bound of the IOPS."""
    start_s: float
    """Time that each cell takes in addition to its runtime."""

    def both_bytes_s(self, write_share: float) -> float:
        """Return the upper bound of reads and writes together."""
        return self.fastest_bytes_s / max(write_share, 1 - write_share) if self.full_duplex else self.fastest_bytes_s


def fastest_mib_s(plan: Plan, transport: str | None, link: str | None) -> float:
    """Return the upper bound of the write bandwidth: a real drive's link, a virtual drive's bus.

    A virtual drive programs slower than its bus, but its write buffer and SLC cache can absorb more for a while.
    """
    if plan.virtual:
        model = model_of(plan)
        return PAGE_BYTES / model.transfer_us * 1e6 / 2**20 if model and model.transfer_us else _FASTEST_OF_ALL_MIB_S
    if (match := _LINK.search(link or "")) is not None and match[1] in _LANE_MIB_S:
        return _LANE_MIB_S[match[1]] * int(match[2])
    return FASTEST_MIB_S.get(transport or "", _FASTEST_OF_ALL_MIB_S)


def model_of(plan: Plan) -> DriveModel | None:
    """Return the model of a virtual drive whose requests take time, or None."""
    mapping = plan.subject["drive"].get("virtual")
    model = None if mapping is None else DriveModel.from_mapping(plan.drive, mapping)
    return model if model is not None and model.enabled else None


def terms_of(plan: Plan, bandwidth_mib_s: float, fastest_mib_s: float | None) -> Terms:
    """Return assumed rates and upper bounds of a drive.

    Without `fastest_mib_s` both are `bandwidth_mib_s`. In real time the kernel may merge a virtual drive's commands, so
    the command rate sets no bound.
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
    """Return the cell's own workload and the concurrent ones, if any."""
    return [replace(cell, beside=None), *(Cell(**other) for other in cell.beside or ())]


def in_flight_bytes(cell: Cell) -> float:
    """Return the most bytes in flight when the runtime ends; fio waits for these I/Os and counts them."""
    return fsum(load.threads * load.queue_depth * load.largest_block_bytes for load in _workloads(cell))


def fastest_bytes_s(cell: Cell, terms: Terms) -> float:
    """Return the upper bound of bytes read and written per second, on average."""
    if cell.beside is not None:
        return min(terms.both_bytes_s(0.5), fsum(fastest_bytes_s(load, terms) for load in _workloads(cell)))
    limit = inf if cell.rate_iops is None else cell.rate_iops * mean_block_bytes(cell)
    return min(terms.both_bytes_s(1 - cell.read_share / 100), terms.commands_s * cell.largest_block_bytes, limit)


def written_in(seconds: float, cell: Cell, terms: Terms) -> float:
    """Return the upper bound of bytes written in `seconds`, by all workloads of the cell."""
    written = (
        writes_of(seconds * fastest_bytes_s(load, terms) + in_flight_bytes(load), load)[1] for load in _workloads(cell)
    )
    return min(fsum(written), seconds * terms.fastest_bytes_s + in_flight_bytes(cell))


def writes_of(volume: float, cell: Cell) -> tuple[float, float]:
    """Return the least and most bytes written when a workload reads and writes `volume` bytes.

    fio draws the direction of each I/O at random. A workload that trims writes nothing.
    """
    if cell.operation == TRIM:
        return 0.0, 0.0
    share = 1 - cell.read_share / 100
    off = _DEVIATIONS * sqrt(share * (1 - share) * cell.largest_block_bytes / volume) if volume else 0.0
    return volume * max(share - off, 0.0), volume * min(share + off, 1.0)


def mean_block_bytes(cell: Cell) -> float:
    """Return the mean size of a cell's I/Os."""
    if cell.block_sizes is not None:
        return fsum(entry["block_size_bytes"] * entry["share"] for entry in cell.block_sizes)
    return (cell.block_size_bytes + (cell.block_size_max_bytes or cell.block_size_bytes)) / 2
