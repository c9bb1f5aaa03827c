"""How long a plan takes and how much it writes, at the least and at the most, before anything is known of the drive."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drivelab.analysis import repeats
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.virtual.model import PAGE_BYTES, DriveModel

FIO_START_S = 0.3
"""What fio needs beyond the runtime of a cell, measured."""
ASSUMED_MIB_S = {"sata": 450.0, "sas": 900.0, "pcie": 2000.0}
"""Write bandwidth assumed of a real drive by its transport: that of common drives, and that of the slowest else."""
FASTEST_MIB_S = {"sata": 560.0, "sas": 2200.0, "pcie": 14000.0}
"""No drive of a transport writes faster, where its link does not say more exactly."""
_LANE_MIB_S = {"2.5": 236.0, "5.0": 472.0, "8.0": 930.0, "16.0": 1860.0, "32.0": 3720.0, "64.0": 7440.0}
"""Payload of a PCIe lane by its GT/s, less encoding and packets."""
_LINK = re.compile(r"(\d+\.\d+) GT/s.* x(\d+)")
_PURGE_S = 60.0


@dataclass(frozen=True)
class Trace:
    """What replaying a trace once means."""

    duration_s: float
    write_bytes: int
    read_bytes: int


@dataclass(frozen=True)
class Estimate:
    """Seconds of the wall clock, and bytes that the host writes."""

    least_s: float = 0.0
    most_s: float = 0.0
    least_bytes: float = 0.0
    most_bytes: float = 0.0

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(
            self.least_s + other.least_s,
            self.most_s + other.most_s,
            self.least_bytes + other.least_bytes,
            self.most_bytes + other.most_bytes,
        )

    def times(self, least: int, most: int) -> Estimate:
        return Estimate(self.least_s * least, self.most_s * most, self.least_bytes * least, self.most_bytes * most)


def assumed_mib_s(plan: Plan, transport: str | None) -> float:
    """Write bandwidth that times are reckoned with: of a virtual drive by its model, of a real one by transport."""
    mapping = plan.subject["drive"].get("virtual")
    if mapping is None:
        return ASSUMED_MIB_S.get(transport or "", min(ASSUMED_MIB_S.values()))
    model = DriveModel.from_mapping(plan.drive, mapping)
    if not model.enabled:
        return max(ASSUMED_MIB_S.values())
    page_us = max(model.program_us / model.dies, model.transfer_us, model.command_us / 32)
    return PAGE_BYTES / page_us * 1e6 / 2**20


def fastest_mib_s(plan: Plan, transport: str | None, link: str | None) -> float:
    """What bounds the bytes that are written in a time: the link of a real drive, the model of a virtual one."""
    if plan.virtual:
        return assumed_mib_s(plan, None)
    if (match := _LINK.search(link or "")) is not None and match[1] in _LANE_MIB_S:
        return _LANE_MIB_S[match[1]] * int(match[2])
    return FASTEST_MIB_S.get(transport or "", max(FASTEST_MIB_S.values()))


def estimate(
    plan: Plan,
    capacity_bytes: int,
    bandwidth_mib_s: float,
    traces: Sequence[Trace],
    fastest_mib_s: float | None = None,
) -> Estimate:
    """Conditioning and all steps: volumes at `bandwidth_mib_s`, and no cell that writes faster than `fastest_mib_s`.

    `traces` are those of the plan, in its order.
    """
    bytes_s = bandwidth_mib_s * 2**20
    fastest_bytes_s = (fastest_mib_s or bandwidth_mib_s) * 2**20
    total = _purge(plan, capacity_bytes, bytes_s)
    fill = plan.subject["condition"].get("fill")
    if fill is not None:
        volume = capacity_bytes * plan.subject["class"]["active_range"] * fill["capacity_multiple"]
        total += Estimate(volume / bytes_s, volume / bytes_s, volume, volume)
    for step in plan.subject["measure"]:
        ((kind, fields),) = step.items()
        if kind == "loop":
            total += _loop(fields, fastest_bytes_s)
        elif kind == "soak":
            total += _soak(fields, capacity_bytes, bytes_s, fastest_bytes_s)
        elif kind == "idle":
            total += Estimate(fields["time_s"], fields["time_s"])
        else:
            total += _replay(fields, traces, capacity_bytes, bytes_s, fastest_bytes_s)
    return total


def _purge(plan: Plan, capacity_bytes: int, bytes_s: float) -> Estimate:
    """At the most an overwrite, which is what `auto` comes to on a drive that has nothing better."""
    method, settle_s = plan.subject["condition"]["purge"], plan.subject["condition"].get("settle_s", 0.0)
    if method == "none":
        return Estimate()
    if plan.virtual and method == "auto":
        return Estimate(settle_s, settle_s + 1.0)
    if method == "overwrite":
        seconds = capacity_bytes / bytes_s + settle_s
        return Estimate(seconds, seconds, capacity_bytes, capacity_bytes)
    overwritten = capacity_bytes if method == "auto" else 0
    return Estimate(settle_s, settle_s + _PURGE_S + overwritten / bytes_s, 0.0, overwritten)


def _loop(fields: Mapping[str, Any], bytes_s: float) -> Estimate:
    if "streams" in fields:
        one_round = _streams(fields["streams"], bytes_s)
    else:
        cells = [Cell(**cell) for cell in fields["cells"]]
        seconds = sum((cell.runtime_s or 0.0) + FIO_START_S for cell in cells)
        most_bytes = sum((cell.runtime_s or 0.0) * (1 - cell.read_share / 100) * bytes_s for cell in cells)
        one_round = Estimate(seconds, seconds, 0.0, most_bytes)
    return one_round.times(fields["until"]["window"], fields["until"]["max_rounds"])


def _streams(streams: Mapping[str, Any], bytes_s: float) -> Estimate:
    """A round of streams that only the trace knows: as many as asked for at the most, and all of them may write."""
    combinations = len(streams["threads"]) * len(streams["queue_depth"])
    least, most = (1, streams["most"]) if streams["kind"] == "individual" else (1, 1)
    once_s = streams["runtime_s"] + FIO_START_S
    cell = Estimate(once_s, once_s, 0.0, streams["runtime_s"] * bytes_s)
    return cell.times(least * combinations, most * combinations)


def _replay(
    fields: Mapping[str, Any], traces: Sequence[Trace], capacity_bytes: int, bytes_s: float, fastest_bytes_s: float
) -> Estimate:
    """All passes over the set. What a trace reads is written beforehand, if asked for: each block once."""
    until = fields["until"]
    least, most = (until["passes"], until["passes"]) if "passes" in until else (repeats.FEWEST, repeats.MOST)
    once = sum((_once(fields["choice"]["timing"], one, fastest_bytes_s) for one in traces), Estimate())
    total = once.times(fields["cold_runs"] + least, fields["cold_runs"] + most)
    if fields["prefill"] == "footprint":
        read_bytes = min(sum(one.read_bytes for one in traces), capacity_bytes)
        total += Estimate(0.0, read_bytes / bytes_s, 0.0, read_bytes)
    return total


def _once(timing: Mapping[str, Any], trace: Trace, fastest_bytes_s: float) -> Estimate:
    """As soon as possible is no sooner than the link allows; a drive that is as slow as the trace's takes its time."""
    least_s = most_s = trace.duration_s * timing.get("factor", 1.0)
    if timing["mode"] in ("asap", "idle-capped"):
        least_s = min((trace.read_bytes + trace.write_bytes) / fastest_bytes_s, most_s)
    return Estimate(least_s, most_s, trace.write_bytes, trace.write_bytes)


def _soak(fields: Mapping[str, Any], capacity_bytes: int, bytes_s: float, fastest_bytes_s: float) -> Estimate:
    """A volume is reached in its own time; random writes may be ten times slower than what is assumed."""
    until, write_share = fields["until"], 1 - fields["cell"]["read_share"] / 100
    volume = until["capacity_multiple"] * capacity_bytes if "capacity_multiple" in until else None
    time_s = until.get("time_s")
    if volume is None:
        return Estimate(time_s, time_s, 0.0, time_s * fastest_bytes_s * write_share)
    fastest_s = volume / bytes_s
    if time_s is None:
        return Estimate(fastest_s, 10 * fastest_s, volume * write_share, volume * write_share)
    return Estimate(min(fastest_s, time_s), time_s, 0.0, min(volume, time_s * fastest_bytes_s) * write_share)
