"""How long a plan takes at the least and at the most, before anything is known of the drive."""

from __future__ import annotations

from dataclasses import dataclass

from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan

FIO_START_S = 0.3
"""What fio needs beyond the runtime of a cell, measured."""
ASSUMED_MIB_S = 500.0
"""Sequential write bandwidth assumed of a drive of which nothing is known."""


@dataclass(frozen=True)
class Estimate:
    """Seconds of the wall clock."""

    least_s: float
    most_s: float

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.least_s + other.least_s, self.most_s + other.most_s)


def estimate(plan: Plan, capacity_bytes: int, bandwidth_mib_s: float, trace_s: float) -> Estimate:
    """Conditioning and all steps; `bandwidth_mib_s` is what volumes are divided by, `trace_s` the trace's length."""
    total = Estimate(1.0, 1.0)
    span_mib = capacity_bytes * plan.subject["class"]["active_range"] / 2**20
    fill = plan.subject["condition"].get("fill")
    if fill is not None:
        seconds = span_mib * fill["capacity_multiple"] / bandwidth_mib_s
        total += Estimate(seconds, seconds)
    for step in plan.subject["measure"]:
        ((kind, fields),) = step.items()
        if kind == "loop":
            one = sum((Cell(**cell).runtime_s or 0.0) + FIO_START_S for cell in fields["cells"])
            total += Estimate(one * fields["until"]["window"], one * fields["until"]["max_rounds"])
        elif kind == "soak":
            total += _soak(fields["until"], capacity_bytes, bandwidth_mib_s)
        else:
            total += Estimate(trace_s * (fields["cold_runs"] + 3), trace_s * (fields["cold_runs"] + 7))
    return total


def _soak(until: dict[str, float], capacity_bytes: int, bandwidth_mib_s: float) -> Estimate:
    by_volume = until.get("capacity_multiple", float("inf")) * capacity_bytes / 2**20 / bandwidth_mib_s
    by_time = until.get("time_s", float("inf"))
    most_s = by_time if by_time < float("inf") else 10 * by_volume
    return Estimate(min(by_volume, by_time), most_s)
