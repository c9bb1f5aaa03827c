"""Estimate how long a plan takes and how much it writes, at least and at most, before the drive is measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drivelab.campaign.ceilings import (
    Terms,
    fastest_bytes_s,
    in_flight_bytes,
    mean_block_bytes,
    model_of,
    terms_of,
    writes_of,
    written_in,
)
from drivelab.core.units import parse_size
from drivelab.drives.purge import METHODS
from drivelab.plan.cell import Cell, fills, pause_s, rounds_at_least, rounds_at_most
from drivelab.plan.loops import MOST_REQUESTS, grace_s
from drivelab.plan.plan import Plan
from drivelab.run.fill import MOST_RESTS, fill_cell, probe_cell, probes
from drivelab.virtual.model import PAGE_BYTES

ASSUMED_MIB_S = {"sata": 450.0, "sas": 900.0, "pcie": 2000.0}
"""Assumed write bandwidth of a real drive by transport; the slowest of them for an unknown transport."""
_SLOWER_AT_RANDOM = 10
"""How many times slower than assumed random writes may be."""
_PURGE_S = 60.0
_FILE_SYSTEM_MULTIPLE = 2
"""Most that one run of an application is assumed to write, in multiples of its file system."""


@dataclass(frozen=True)
class Trace:
    """Duration and volumes of one replay of a trace."""

    duration_s: float
    write_bytes: int
    read_bytes: int


_LIKELY = 0.15
"""Position of the likely duration between the least (0) and the most (1)."""


@dataclass(frozen=True)
class Estimate:
    """Wall-clock seconds, and bytes that the host writes."""

    least_s: float = 0.0
    most_s: float = 0.0
    least_bytes: float = 0.0
    most_bytes: float = 0.0

    @property
    def likely_s(self) -> float:
        """Return the likely duration: nearer to the least, because steady state usually comes early."""
        return self.least_s + _LIKELY * (self.most_s - self.least_s)

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
    """Return the write bandwidth for estimates: a virtual drive's from its model, a real drive's by transport."""
    if not plan.virtual:
        return ASSUMED_MIB_S.get(transport or "", min(ASSUMED_MIB_S.values()))
    model = model_of(plan)
    if model is None:
        return max(ASSUMED_MIB_S.values())
    page_us = max(model.program_us / model.dies, model.transfer_us, model.command_us / 32)
    return PAGE_BYTES / page_us * 1e6 / 2**20


def estimate(
    plan: Plan, capacity_bytes: int, bandwidth_mib_s: float, traces: Sequence[Trace], fastest_mib_s: float | None = None
) -> Estimate:
    """Estimate conditioning and all steps: volumes take `bandwidth_mib_s`, and `fastest_mib_s` is the upper bound.

    `traces` are those of the plan, in its order. Without `fastest_mib_s` the assumed bandwidth is also the upper bound;
    then the result does not bound the real time and bytes.
    """
    terms = terms_of(plan, bandwidth_mib_s, fastest_mib_s)
    total = _purge(plan, capacity_bytes, terms)
    if plan.file_system is not None:
        capacity_bytes = plan.file_system.file_bytes(capacity_bytes)
    condition, measure = plan.subject["condition"], plan.subject["measure"]
    for fill in fills(condition):
        total += _fill(fill_cell(fill, plan, capacity_bytes), terms)
    first = fill_cell(fills(condition)[0], plan, capacity_bytes) if probes(plan.subject) else None
    total += rest_estimate(condition, first, capacity_bytes)
    for step in measure:
        ((kind, fields),) = step.items()
        if kind == "loop":
            total += _loop(fields, _demand(fields, measure), terms)
        elif kind == "soak":
            total += _soak(fields, _demand(fields, measure), capacity_bytes, terms)
        elif kind == "idle":
            total += Estimate(fields["time_s"], fields["time_s"])
        elif kind == "application":
            total += _application(fields, parse_size(plan.subject["application"]["size"]), terms.bytes_s)
        elif kind == "load":
            total += _load(fields, terms)
        else:
            total += _replay(fields, traces, capacity_bytes, terms)
    return total


def rest_estimate(condition: Mapping[str, Any], fill: Cell | None, capacity_bytes: int) -> Estimate:
    """Return the rest after the fill; with the first pass `fill`, rests are repeated until a short write is fast."""
    rest_s = condition.get("rest_s", 0.0)
    if fill is None:
        return Estimate(rest_s, rest_s)
    probe_bytes = probe_cell(fill, capacity_bytes).volume_bytes or 0
    return Estimate(rest_s, MOST_RESTS * rest_s, 2 * probe_bytes, (1 + MOST_RESTS) * probe_bytes)


def _demand(fields: Mapping[str, Any], measure: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the default threads and queue depth of cells: the most that a point may choose, else 1."""
    loop = dict(enumerate(measure)).get(fields["point"]["step"], {}).get("loop", {}) if "point" in fields else {}
    cells = loop.get("cells", ())
    return {key: max((cell.get(key, 1) for cell in cells), default=1) for key in ("threads", "queue_depth")}


def _fill(cell: Cell, terms: Terms) -> Estimate:
    """Estimate one pass; random writes may be ten times slower than assumed."""
    volume = float(cell.volume_bytes or 0)
    slower = 1 if cell.pattern == "sequential" else _SLOWER_AT_RANDOM
    least_s = volume / fastest_bytes_s(cell, terms)
    return Estimate(least_s, max(slower * volume / terms.bytes_s, least_s), *writes_of(volume, cell))


def _purge(plan: Plan, capacity_bytes: int, terms: Terms) -> Estimate:
    """Estimate the purge; at most an overwrite, which `auto` uses if the drive supports no better method."""
    method, settle_s = plan.subject["condition"]["purge"], plan.subject["condition"].get("settle_s", 0.0)
    if method == "none":
        return Estimate()
    if plan.virtual and method == "auto":
        return Estimate(settle_s, settle_s + 1.0)
    if method in METHODS and METHODS[method].host_writes:
        least_s, most_s = (settle_s + capacity_bytes / rate for rate in (terms.fastest_bytes_s, terms.bytes_s))
        return Estimate(least_s, most_s, capacity_bytes, capacity_bytes)
    overwritten = capacity_bytes if method == "auto" else 0
    return Estimate(settle_s, settle_s + _PURGE_S + overwritten / terms.bytes_s, 0.0, overwritten)


def _loop(fields: Mapping[str, Any], demand: Mapping[str, int], terms: Terms) -> Estimate:
    until, cold = fields["until"], fields.get("cold_rounds", 0)
    one_round = _streams(fields, terms) if "streams" in fields else _cells(fields, demand, terms)
    return one_round.times(cold + rounds_at_least(until), cold + rounds_at_most(until))


def _cells(fields: Mapping[str, Any], demand: Mapping[str, int], terms: Terms) -> Estimate:
    """Estimate a round of cells. fio starts during the pause before a cell, so the longer of both counts."""
    total = Estimate()
    for mapping in fields["cells"]:
        cell = Cell(**{**demand, **mapping})
        runtime_s = cell.runtime_s or 0.0
        once_s = runtime_s + max(pause_s(fields, runtime_s), terms.start_s)
        total += Estimate(once_s, once_s + _drain_s(cell, terms), 0.0, written_in(runtime_s, cell, terms))
    return total


def _load(fields: Mapping[str, Any], terms: Terms) -> Estimate:
    """Estimate a search: at least a rate that passes and one that fails; at most every rate as often as allowed.

    An overloaded rate takes longer, by the time in which the last requests are issued and complete.
    """
    cell, rates = Cell(**fields["cell"]), fields["rates"]
    far = max(rates["most_iops"] / rates["start_iops"], rates["start_iops"])
    steps = 1 + math.ceil(math.log(far, rates["factor"]))
    bisections = 2 * math.ceil(math.log2(max(math.log(rates["factor"]) / math.log1p(rates["resolution"]), 1)))
    most = (steps + bisections) * fields["tries"]
    least_s = min(fields["runtime_s"], MOST_REQUESTS / rates["most_iops"])
    most_s = fields["runtime_s"] + grace_s(fields) + _drain_s(cell, terms)
    return Estimate(2 * least_s, most * most_s, 0.0, most * written_in(most_s, cell, terms))


def _drain_s(cell: Cell, terms: Terms) -> float:
    """Return the most seconds that I/Os in flight take after the runtime ends."""
    return _SLOWER_AT_RANDOM * in_flight_bytes(cell) / terms.bytes_s


def _streams(fields: Mapping[str, Any], terms: Terms) -> Estimate:
    """Estimate a round of streams. The trace determines them: at most as many as requested, and all may write."""
    streams = fields["streams"]
    combinations = len(streams["threads"]) * len(streams["queue_depth"])
    once_s = streams["runtime_s"] + max(pause_s(fields, streams["runtime_s"]), terms.start_s)
    cell = Estimate(once_s, once_s, 0.0, streams["runtime_s"] * terms.fastest_bytes_s)
    return cell.times(combinations, streams["most"] * combinations)


def _replay(fields: Mapping[str, Any], traces: Sequence[Trace], capacity_bytes: int, terms: Terms) -> Estimate:
    """Estimate all passes over the traces. A prefill first writes each block that the traces read once."""
    least, most = rounds_at_least(fields["until"]), rounds_at_most(fields["until"])
    once = sum((_once(fields["choice"]["timing"], trace, terms) for trace in traces), Estimate())
    total = once.times(fields["cold_runs"] + least, fields["cold_runs"] + most)
    if fields["prefill"] == "footprint":
        read_bytes = min(sum(trace.read_bytes for trace in traces), capacity_bytes)
        total += Estimate(0.0, read_bytes / terms.bytes_s, 0.0, read_bytes)
    return total


def _application(fields: Mapping[str, Any], file_system_bytes: int, bytes_s: float) -> Estimate:
    """Estimate an application: assume that each run, setup included, fills its file system at most twice."""
    least, most = rounds_at_least(fields["until"]), rounds_at_most(fields["until"])
    volume = _FILE_SYSTEM_MULTIPLE * file_system_bytes
    return Estimate(0.0, volume / bytes_s, 0.0, volume).times(fields["cold_runs"] + least, fields["cold_runs"] + most)


def _once(timing: Mapping[str, Any], trace: Trace, terms: Terms) -> Estimate:
    """Estimate one replay: `asap` is limited by the link; a drive as slow as the trace's takes the trace's time."""
    least_s = most_s = trace.duration_s * timing.get("factor", 1.0)
    if timing["mode"] in ("asap", "idle-capped"):
        volume = trace.read_bytes + trace.write_bytes
        least_s = min(volume / terms.both_bytes_s(trace.write_bytes / volume) if volume else 0.0, most_s)
    return Estimate(least_s, most_s, trace.write_bytes, trace.write_bytes)


def _soak(fields: Mapping[str, Any], demand: Mapping[str, int], capacity_bytes: int, terms: Terms) -> Estimate:
    """Estimate a soak.

    To reach a volume, the drive may be ten times slower than assumed. An IOPS limit lengthens that time. With a
    steady-state rule the soak may end after the first window.
    """
    until, cell = fields["until"], Cell(**{**demand, **fields["cell"]})
    whole = _without_window(until, cell, capacity_bytes, terms)
    if "steady_state" not in until:
        return whole
    rule = until["steady_state"]
    return Estimate(min(rule["window"] * rule["every_s"], whole.least_s), whole.most_s, 0.0, whole.most_bytes)


def _without_window(until: Mapping[str, Any], cell: Cell, capacity_bytes: int, terms: Terms) -> Estimate:
    """Estimate a soak until a volume or a time, whichever comes first; the volume counts reads and writes."""
    time_s: float | None = until.get("time_s")
    written_in_time = written_in(time_s or 0.0, cell, terms)
    if time_s is not None and "capacity_multiple" not in until:
        return Estimate(time_s, time_s + _drain_s(cell, terms), 0.0, written_in_time)
    volume = float(int(until["capacity_multiple"] * capacity_bytes))
    # Each thread transfers its part of the volume in whole I/Os.
    part = cell.total_threads * cell.largest_block_bytes
    whole_ios = volume % part == 0 and mean_block_bytes(cell) == cell.largest_block_bytes
    least, most = writes_of(volume, cell) if cell.beside is None else (0.0, volume)
    if not whole_ios:
        least, most = max(least - part, 0.0), most + part
    least_s = volume / fastest_bytes_s(cell, terms)
    if time_s is None:
        return Estimate(least_s, max(_SLOWER_AT_RANDOM * volume / terms.bytes_s, least_s), least, most)
    return Estimate(min(least_s, time_s), time_s + _drain_s(cell, terms), 0.0, min(most, written_in_time))
