"""Say whether the host, not the drive, may have limited a cell.

Two signs count: the cell comes near the host's ceiling at the same load, or it keeps its CPUs busy. A ceiling comes
from null targets, see `drivelab.fio.null_target`. Most of them bound it from one side only, so a cell can also be
undecided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drivelab.core.units import format_factor

NEAR_CEILING = 0.8
"""Share of the ceiling from which the host limits a cell (ours): queueing then adds to every latency."""
REFUTED = 1.1
"""A cell that is faster than the ceiling by this factor shows that something slowed down the null target."""
BUSY_PCT = 90.0
"""CPU time above which a cell's CPUs are busy (ours), as in a quick look."""
LEAST_S = 0.5
"""Shortest time over which CPU shares are computed: the kernel counts CPU time in ticks of 10 ms."""
CPUS = "cpus"
"""Key of a journal line: how busy the CPUs were while the cell ran, from `drivelab.telemetry.host`."""
AT_LEAST, AT_MOST = "at least", "at most"
"""What a null target says of the ceiling: the host gives at least, or at most, this number of I/Os a second."""


@dataclass(frozen=True)
class Ceiling:
    """What the host gives at one load, in I/Os per second; None: not known from this side."""

    at_least_iops: float | None = None
    at_most_iops: float | None = None

    @classmethod
    def of(cls, measured: Iterable[Mapping[str, Any]]) -> Ceiling:
        """Return the narrowest range from the results of several targets: `iops`, and `bounds` of AT_LEAST, AT_MOST.

        A target that is slower than a lower bound cannot be an upper bound: noise stopped it, so both are the higher.
        """
        results = list(measured)
        lows = [float(result["iops"]) for result in results if AT_LEAST in result["bounds"]]
        highs = [float(result["iops"]) for result in results if AT_MOST in result["bounds"]]
        low, high = max(lows, default=None), min(highs, default=None)
        return cls(low, max(high, low) if high is not None and low is not None else high)

    def words(self) -> str:
        """Describe the range: `at least 120,000 and at most 410,000`; `not known` without a bound."""
        sides = ((AT_LEAST, self.at_least_iops), (AT_MOST, self.at_most_iops))
        if self.at_least_iops is not None and self.at_least_iops == self.at_most_iops:
            return f"about {format_factor(self.at_least_iops)}"
        return " and ".join(f"{word} {format_factor(iops)}" for word, iops in sides if iops is not None) or "not known"


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


def host_limits(iops: float, ceiling: Ceiling, use: CpuUse) -> list[str]:
    """Return why the host may be the limit of a cell; empty if nothing shows it.

    Each reason begins with its cause, `ceiling` or `cpu`, and a colon.
    """
    reasons = []
    most = ceiling.at_most_iops
    if most is not None and NEAR_CEILING * most <= iops <= REFUTED * most:
        reasons.append(
            f"ceiling: the host gives {AT_MOST} {format_factor(most)} IOPS at this load, so the drive may be faster"
        )
    if use.threads_pct is not None and use.threads_pct > BUSY_PCT:
        reasons.append(f"cpu: fio's threads used {use.threads_pct:.0f} % of a CPU each, so the drive may be faster")
    elif use.busiest_pct is not None and use.busiest_pct > BUSY_PCT:
        reasons.append(
            f"cpu: the busiest CPUs were {use.busiest_pct:.0f} % busy, {use.interrupt_pct or 0.0:.0f} % with "
            "interrupts, so the drive may be faster"
        )
    return reasons


def is_host_limited(iops: float, ceiling: Ceiling, use: CpuUse) -> bool | None:
    """Return whether the host may be the limit of a cell; None if nothing rules it out.

    Only a cell well below a lower bound of the ceiling is not limited by the host.
    """
    if host_limits(iops, ceiling, use):
        return True
    return False if ceiling.at_least_iops is not None and iops < NEAR_CEILING * ceiling.at_least_iops else None


def most_severe(texts: Iterable[object]) -> str | None:
    """Join the reasons of several cells: of each cause the first, and whether there are others.

    Nulls of any kind are cells without a reason; the result is None if all are.
    """
    by_cause: dict[str, dict[str, None]] = {}
    for text in texts:
        for reason in text.split("; ") if isinstance(text, str) else ():
            by_cause.setdefault(reason.partition(":")[0], {})[reason] = None
    parts = []
    for reasons in by_cause.values():
        first, *others = reasons
        parts.append(first if not others or first.endswith(_ALIKE) else f"{first}{_ALIKE}")
    return "; ".join(parts) or None


def without_causes(text: str) -> str:
    """Return reasons as people read them, without `ceiling:` and `cpu:`."""
    return ", ".join(reason.partition(": ")[2] for reason in text.split("; "))


_ALIKE = " (and similar cells)"
