"""Say whether the host, not the drive, may have limited a cell: whether the cell kept its CPUs busy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BUSY_PCT = 90.0
"""CPU time above which a cell's CPUs are busy (ours), as in a quick look."""
LEAST_S = 0.5
"""Shortest time over which CPU shares are computed: the kernel counts CPU time in ticks of 10 ms."""
CPUS = "cpus"
"""Key of a journal line: how busy the CPUs were while the cell ran, from `drivelab.telemetry.host`."""


@dataclass(frozen=True)
class CpuUse:
    """How busy the CPUs of a cell were, in percent of their time; None: not known."""

    threads_pct: float | None = None
    """Mean of fio's threads, without interrupts."""
    busiest_pct: float | None = None
    """Mean of the busiest CPUs, as many as the cell has threads, with interrupts, without the load by others."""
    interrupt_pct: float | None = None
    """Part of it that interrupts and softirqs took."""


UNKNOWN = CpuUse()


def cpu_use(
    facts: Mapping[str, Any], threads: int, threads_pct: float | None = None, load_pct: float | None = None
) -> CpuUse:
    """Return the CPU use of a cell from its journal line.

    Nobody knows on which CPUs others ran, so all of their time is taken from the busiest CPUs. Without `load_pct`, the
    share of the host's CPU time that others used, the busiest CPUs are not known.
    """
    counts = facts.get(CPUS)
    if counts is None or load_pct is None:
        return CpuUse(threads_pct)
    busiest: Sequence[Sequence[float]] = counts["busiest"][: max(threads, 1)]
    if not busiest:
        return CpuUse(threads_pct)
    others_pct = load_pct * counts["count"]
    busy_pct, interrupt_pct = (sum(column) for column in zip(*busiest, strict=True))
    return CpuUse(threads_pct, max(busy_pct - others_pct, 0.0) / len(busiest), interrupt_pct / len(busiest))


def host_limit(use: CpuUse) -> str | None:
    """Return why the host may be the limit of a cell; None if nothing shows it."""
    if use.threads_pct is not None and use.threads_pct > BUSY_PCT:
        return f"fio's threads used {use.threads_pct:.0f} % of a CPU each, so the drive may be faster"
    if use.busiest_pct is not None and use.busiest_pct > BUSY_PCT:
        return (
            f"the busiest CPUs were {use.busiest_pct:.0f} % busy, {use.interrupt_pct or 0.0:.0f} % with interrupts, "
            "so the drive may be faster"
        )
    return None


def most_severe(reasons: Iterable[object]) -> str | None:
    """Return the first reason of several cells, and whether there are others.

    Nulls of any kind are cells without a reason; the result is None if all are.
    """
    distinct = list(dict.fromkeys(reason for reason in reasons if isinstance(reason, str)))
    if not distinct:
        return None
    return distinct[0] if len(distinct) == 1 or distinct[0].endswith(_ALIKE) else f"{distinct[0]}{_ALIKE}"


_ALIKE = " (and similar cells)"
