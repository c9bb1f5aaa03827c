"""How long a plan takes and how much it writes, at the least and at the most, before anything is known of the drive."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.protocol.plan_fields import fills, pause_s, rounds_at_least, rounds_at_most
from drivelab.stages.fill import fill_cell
from drivelab.units import parse_size
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
_FILE_SYSTEM_MULTIPLE = 2
"""Of an application's file system, what one run of it is reckoned to write at the most."""


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
    condition = plan.subject["condition"]
    for fill in fills(condition):
        volume = float(fill_cell(fill, plan, capacity_bytes).volume_bytes or 0)
        total += Estimate(volume / bytes_s, volume / bytes_s, volume, volume)
    rest_s = condition.get("rest_s", 0.0)
    total += Estimate(rest_s, rest_s)
    for step in plan.subject["measure"]:
        ((kind, fields),) = step.items()
        if kind == "loop":
            total += _loop(fields, fastest_bytes_s)
        elif kind == "soak":
            total += _soak(fields, capacity_bytes, bytes_s, fastest_bytes_s)
        elif kind == "idle":
            total += Estimate(fields["time_s"], fields["time_s"])
        elif kind == "application":
            total += _application(fields, parse_size(plan.subject["application"]["size"]), bytes_s)
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
    until, cold = fields["until"], fields.get("cold_rounds", 0)
    one_round = _streams(fields, bytes_s) if "streams" in fields else _cells(fields, bytes_s)
    return one_round.times(cold + rounds_at_least(until), cold + rounds_at_most(until))


def _cells(fields: Mapping[str, Any], bytes_s: float) -> Estimate:
    """A round of cells. fio starts within the pause before a cell, so the pause takes no more than what it starts in.

    What a cell runs at that gets threads and depth from a point is the same to its time and its bytes.
    """
    total = Estimate()
    for mapping in fields["cells"]:
        cell = Cell(**{"threads": 1, "queue_depth": 1, **mapping})
        runtime_s = cell.runtime_s or 0.0
        once_s = runtime_s + max(pause_s(fields, runtime_s), FIO_START_S)
        total += Estimate(once_s, once_s, 0.0, runtime_s * _write_bytes_s(cell, bytes_s))
    return total


def _write_bytes_s(cell: Cell, bytes_s: float) -> float:
    """Written in a second at the most, by both workloads where there are two; a limit of the IOPS bounds the first."""
    limit = bytes_s if cell.rate_iops is None else min(cell.rate_iops * mean_block_bytes(cell), bytes_s)
    beside = bytes_s * (1 - cell.beside["read_share"] / 100) if cell.beside is not None else 0.0
    return min(limit * (1 - cell.read_share / 100) + beside, bytes_s)


def mean_block_bytes(cell: Cell) -> float:
    """Mean size of a cell's I/Os."""
    if cell.block_sizes is not None:
        return fsum(one["block_size_bytes"] * one["share"] for one in cell.block_sizes)
    return (cell.block_size_bytes + (cell.block_size_max_bytes or cell.block_size_bytes)) / 2


def _streams(fields: Mapping[str, Any], bytes_s: float) -> Estimate:
    """A round of streams that only the trace knows: as many as asked for at the most, and all of them may write."""
    streams = fields["streams"]
    combinations = len(streams["threads"]) * len(streams["queue_depth"])
    least, most = (1, streams["most"]) if streams["kind"] == "individual" else (1, 1)
    once_s = streams["runtime_s"] + max(pause_s(fields, streams["runtime_s"]), FIO_START_S)
    cell = Estimate(once_s, once_s, 0.0, streams["runtime_s"] * bytes_s)
    return cell.times(least * combinations, most * combinations)


def _replay(
    fields: Mapping[str, Any], traces: Sequence[Trace], capacity_bytes: int, bytes_s: float, fastest_bytes_s: float
) -> Estimate:
    """All passes over the set. What a trace reads is written beforehand, if asked for: each block once."""
    least, most = rounds_at_least(fields["until"]), rounds_at_most(fields["until"])
    once = sum((_once(fields["choice"]["timing"], one, fastest_bytes_s) for one in traces), Estimate())
    total = once.times(fields["cold_runs"] + least, fields["cold_runs"] + most)
    if fields["prefill"] == "footprint":
        read_bytes = min(sum(one.read_bytes for one in traces), capacity_bytes)
        total += Estimate(0.0, read_bytes / bytes_s, 0.0, read_bytes)
    return total


def _application(fields: Mapping[str, Any], file_system_bytes: int, bytes_s: float) -> Estimate:
    """Nobody knows what an application will do: reckoned is that it writes its file system full at the most twice,
    setting up included."""
    least, most = rounds_at_least(fields["until"]), rounds_at_most(fields["until"])
    volume = _FILE_SYSTEM_MULTIPLE * file_system_bytes
    return Estimate(0.0, volume / bytes_s, 0.0, volume).times(fields["cold_runs"] + least, fields["cold_runs"] + most)


def _once(timing: Mapping[str, Any], trace: Trace, fastest_bytes_s: float) -> Estimate:
    """As soon as possible is no sooner than the link allows; a drive that is as slow as the trace's takes its time."""
    least_s = most_s = trace.duration_s * timing.get("factor", 1.0)
    if timing["mode"] in ("asap", "idle-capped"):
        least_s = min((trace.read_bytes + trace.write_bytes) / fastest_bytes_s, most_s)
    return Estimate(least_s, most_s, trace.write_bytes, trace.write_bytes)


def _soak(fields: Mapping[str, Any], capacity_bytes: int, bytes_s: float, fastest_bytes_s: float) -> Estimate:
    """A volume is reached in its own time; random writes may be ten times slower than what is assumed.

    A limit of the IOPS makes that time longer. With a steady state it may all be over after the first window.
    """
    until, cell = fields["until"], Cell(**{"threads": 1, "queue_depth": 1, **fields["cell"]})
    whole = _without_window(until, cell, capacity_bytes, bytes_s, fastest_bytes_s)
    if "steady_state" not in until:
        return whole
    rule = until["steady_state"]
    return Estimate(min(rule["window"] * rule["every_s"], whole.least_s), whole.most_s, 0.0, whole.most_bytes)


def _without_window(
    until: Mapping[str, Any], cell: Cell, capacity_bytes: int, bytes_s: float, fastest_bytes_s: float
) -> Estimate:
    """Until a volume or a time, whichever comes first."""
    write_share = 1 - cell.read_share / 100
    time_s: float | None = until.get("time_s")
    written_in_time = (time_s or 0.0) * _write_bytes_s(cell, fastest_bytes_s)
    if time_s is not None and "capacity_multiple" not in until:
        return Estimate(time_s, time_s, 0.0, written_in_time)
    volume = until["capacity_multiple"] * capacity_bytes
    rate = bytes_s if cell.rate_iops is None else min(cell.rate_iops * mean_block_bytes(cell), bytes_s)
    fastest_s = volume / rate
    least, most = (volume * write_share,) * 2 if cell.beside is None else (0.0, volume)
    if time_s is None:
        return Estimate(fastest_s, max(10 * volume / bytes_s, fastest_s), least, most)
    return Estimate(min(fastest_s, time_s), time_s, 0.0, min(most, written_in_time))
