"""Run one cell or replay, check its evidence and telemetry, and describe it for the journal."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from time import sleep
from typing import Any

from drivelab.core.errors import CellFailed
from drivelab.core.programs import Timing
from drivelab.criteria.host_limit import CPUS
from drivelab.criteria.taint import KERNEL, Limits, foreign_writes, is_busy, own_writes, taints, told
from drivelab.fio.result import FioResult, read_result
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.recording.writer import Recording
from drivelab.run.device import Device
from drivelab.run.schedules import Schedules
from drivelab.run.together import Barrier
from drivelab.telemetry.host import busiest_cpus, cpu_times
from drivelab.telemetry.sampler import Sampler
from drivelab.telemetry.time_window import CPU_COUNTERS, cpu_shares, summarise

REMEASURE = 0 if os.environ.get("DRIVELAB_REMEASURE") == "0" else 2
"""Repetitions of what load of others disturbed, unless the study says another number (ours)."""
LOOK_S = 1.0
"""Time to observe the load of the host before a repetition: the kernel counts CPU time in ticks of 10 ms."""
LOOKS_S, LOOKS_SHARE = 5.0, 0.1
"""A measurement looks at most so long, and a tenth of what it measured (ours). It looks once before a repetition, and
does not wait until others end: a drive that idles recovers, so it would be another drive."""

Attempt = Callable[[str], tuple[Any, dict[str, Any]]]
"""Runs something with its evidence in the folder of this name; returns the result and the facts for the journal."""


class Bench:
    """Runs cell after cell on one device with short gaps, and records the gaps."""

    def __init__(self, plan: Plan, device: Device, recording: Recording, schedules: Schedules) -> None:
        self.plan, self.device, self.recording, self.schedules = plan, device, recording, schedules
        taint = plan.context.get("taint", {})
        self._limits = Limits.from_mapping(taint)
        self._most_again = int(taint.get("remeasure", REMEASURE))
        self._any_taint = "taint" in plan.subject
        """Whether the study asks for repetitions, which is for all that is tainted; else only load of others counts."""
        self.telemetry = Sampler(device.telemetry_sources(), recording.part)
        self._on_host = plan.clock == "wall"
        self._looks_left_s = LOOKS_S
        self._tainted: list[Mapping[str, Any]] = [line for line in recording.journal() if line["event"] == "tainted"]
        """Attempts that others followed, with their places; also those before an interruption."""
        self._judged = False
        """Whether what runs next is judged at once."""
        self.barrier: Barrier | None = None
        """Set if other drives are measured at the same time."""
        self._ended_s: float | None = None
        self._prepared: str | None = None
        """Name of the cell that is prepared."""

    def run(
        self, name: str, act: Callable[[Path], Timing | None], *, counted: bool = True
    ) -> tuple[Path, dict[str, Any]]:
        """Let `act` write evidence to the folder `name`.

        Return the folder and the timing facts for the journal. The host's counters are read at both edges, so they
        cover even a short cell. If cells are judged at once, the drive's counters are read too, which lengthens the gap
        between cells. The kernel's counters are read immediately before and after `act`; the facts hold their
        increase, for `foreign_writes`, unless what `act` writes is not `counted`, as NVMe commands are not. So are the
        times of each CPU, for `drivelab.criteria.host_limit`.

        `gap_ms` ends when the process starts, about 0.3 s before fio's first I/O. For a cell that was `prepared` it
        ends at the release, about 0.2 ms before.
        """
        if self._prepared != name:
            self.forget()
        directory = self.recording.directory(name, staged=self._prepared == name)
        self._prepared = None
        thorough = self._any_taint
        self.telemetry.begin_cell(thorough, keep=self._judged)
        self._judged = False
        before = self.device.kernel_writes() if counted else None
        cpus_before = cpu_times() if self._on_host else {}
        timing = act(directory)
        cpus_after = cpu_times() if self._on_host else {}
        after = self.device.kernel_writes() if counted else None
        facts: dict[str, Any] = {"directory": name}
        if before is not None and after is not None:
            facts[KERNEL] = {kind: after[kind] - before[kind] for kind in after}
        if timing is not None:
            if (cpus := busiest_cpus(cpus_before, cpus_after)) is not None:
                facts[CPUS] = cpus
            self.telemetry.edge(thorough)
            facts["started_s"] = self.telemetry.unix_s(timing.started_s)
            facts["ended_s"] = self.telemetry.unix_s(timing.ended_s)
            if self._ended_s is not None:
                facts["gap_ms"] = round(1000 * (timing.started_s - self._ended_s), 3)
            self._ended_s = timing.ended_s
            self._looks_left_s += LOOKS_SHARE * (timing.ended_s - timing.started_s)
            if timing.prepared:
                facts["prepared"] = True
        return directory, facts

    @property
    def has_prepared(self) -> bool:
        """Return whether a cell is prepared."""
        return self._prepared is not None

    def prepare(self, name: str, cell: Cell) -> None:
        """Prepare the cell that probably comes next; `forget` ends that without a trace in the recording.

        Without memory or space for it, nothing is prepared.
        """
        self.forget()
        try:
            self.device.prepare(cell, self.recording.stage(), self.plan.seed(name))
        except OSError:
            self.recording.unstage()
        else:
            self._prepared = name

    def forget(self) -> None:
        """End what is prepared, because another cell comes next or none."""
        if self._prepared is not None:
            self.device.forget()
            self.recording.unstage()
            self._prepared = None

    def give_way(self) -> None:
        """Let another measurement run before the next cell: the time between says nothing of the harness."""
        self._ended_s = None

    def run_cell(
        self,
        name: str,
        cell: Cell,
        on_tick: Callable[[float], None],
        place: dict[str, int],
        before_again: Callable[[dict[str, Any]], None] = lambda facts: None,
        *,
        alike: bool = False,
    ) -> tuple[FioResult, dict[str, Any]]:
        """Run a cell and check its evidence; see `undisturbed`.

        Raise CellFailed with the workload's name when a check fails.
        """
        result, facts = self.undisturbed(
            name,
            lambda folder: self._attempt(folder, cell, on_tick),
            place,
            lambda result: {"workload": cell.to_mapping(), "metrics": metrics(result)},
            before_again,
            alike=alike or self._any_taint,
        )
        return result, facts

    def undisturbed(
        self,
        name: str,
        attempt: Attempt,
        place: Mapping[str, Any],
        described: Callable[[Any], Mapping[str, Any]],
        before_again: Callable[[dict[str, Any]], None] = lambda facts: None,
        *,
        alike: bool,
    ) -> tuple[Any, dict[str, Any]]:
        """Run an attempt, and repeat it while it is tainted; return the result and the facts of the one that counts.

        What load of others disturbed is repeated after the load has passed, if a repetition is `alike`: the drive is
        in the same state as before. A study may ask for repetitions of all that is tainted. Drives that are measured at
        the same time repeat only then. The last attempt counts, tainted or not. Each of the others is kept with a line
        `tainted` in the journal, which has `place`, what the result is `described` by, and `waited_s`. `before_again`
        is called with the facts of each attempt that another one follows.
        """
        most = self._most_again if alike and (self.barrier is None or self._any_taint) else 0
        done = sum(all(line.get(key) == value for key, value in place.items()) for line in self._tainted)
        for number in range(done, max(most, done) + 1):
            self._judged = most > 0
            result, facts = attempt(name if number == 0 else f"{name}-again{number}")
            reasons = self._taints(facts) if number < most else []
            if not reasons or not self._is_over(reasons, facts):
                break
            self.recording.append("tainted", **place, **described(result), reasons=reasons, **facts)
            self._tainted.append(place)
            before_again(facts)
        return result, facts

    def _is_over(self, reasons: list[str], facts: dict[str, Any]) -> bool:
        """Return whether what tainted an attempt is over; look for load of others, and add `waited_s` to the facts."""
        if not is_busy(told(reasons)):
            return self._any_taint
        if self._looks_left_s < LOOK_S:
            return False
        self.forget()  # it would be part of the load
        self.telemetry.edge()
        from_s = self.telemetry.now_s()
        sleep(LOOK_S)
        to_s = self.telemetry.now_s()
        self.telemetry.edge()
        self._looks_left_s -= to_s - from_s
        self.give_way()
        facts["waited_s"] = round(to_s - from_s, 3)
        return not self._load(from_s, to_s)

    def _attempt(self, name: str, cell: Cell, on_tick: Callable[[float], None]) -> tuple[FioResult, dict[str, Any]]:
        try:
            directory, facts = self.run(
                name,
                lambda folder: self.device.run(cell, folder, self.plan.seed(name), on_tick),
                counted=not cell.nvme,
            )
            result = read_result(directory, cell)
            own = own_writes(result.write.bytes, result.trim.bytes, read=result.read.bytes)
            return result, {**facts, **own, **io_span(result)}
        except CellFailed as failure:
            raise CellFailed(f"{cell.label} in {name}: {failure}") from None

    def _taints(self, facts: dict[str, Any]) -> list[str]:
        """Return why an attempt is tainted; without a look at the rest if no load disturbed it and that is enough."""
        if "started_s" not in facts:
            return []
        span = facts["started_s"], facts["ended_s"]
        if not self._any_taint and not self._load(*span):
            return []
        return taints({**summarise(self.telemetry.kept(), *span), **foreign_writes(facts)}, self._limits)

    def _load(self, start_s: float, end_s: float) -> list[str]:
        """Return the taints by load of others; fast, as it lengthens the gap between cells."""
        samples = [sample for sample in self.telemetry.kept() if "cpu_total_s" in sample]
        before = [sample for sample in samples if sample["at_s"] <= start_s]
        after = [sample for sample in samples if sample["at_s"] >= end_s]
        if not before or not after:
            return []
        first, last = before[-1], after[0]
        rises = {name: last[name] - first[name] for name in CPU_COUNTERS if name in first and name in last}
        return taints(cpu_shares(rises), self._limits)


def io_span(result: FioResult) -> dict[str, float]:
    """Return start and end of a run's I/O for the journal: Unix time in seconds, or virtual time.

    fio reports when it printed its last document and how long the I/O lasted. It prints after its threads have ended
    and written their logs, so both times may be late by tens of milliseconds.
    """
    started_s = result.started.timestamp()
    return {"io_started_s": round(started_s, 3), "io_ended_s": round(started_s + result.runtime_s, 3)}


def metrics(result: FioResult) -> dict[str, float]:
    """Return the values that stop rules use."""
    return {
        "iops": result.iops,
        "bandwidth_mib_s": result.bandwidth_mib_s,
        "mean_latency_us": result.mean_latency_us,
    }
