"""Run one cell, check its evidence and telemetry, and describe it for the journal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from drivelab.core.errors import CellFailed
from drivelab.core.programs import Timing
from drivelab.criteria.host_limit import CPUS
from drivelab.criteria.taint import KERNEL, Limits, foreign_writes, own_writes, taints
from drivelab.fio.result import FioResult, read_result
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.recording.writer import Recording
from drivelab.run.device import Device
from drivelab.run.schedules import Schedules
from drivelab.run.together import Barrier
from drivelab.telemetry.host import busiest_cpus, cpu_times
from drivelab.telemetry.sampler import Sampler
from drivelab.telemetry.time_window import summarise


class Bench:
    """Runs cell after cell on one device with short gaps, and records the gaps."""

    def __init__(self, plan: Plan, device: Device, recording: Recording, schedules: Schedules) -> None:
        self.plan, self.device, self.recording, self.schedules = plan, device, recording, schedules
        taint = plan.subject.get("taint", {})
        self._remeasure, self._limits = int(taint.get("remeasure", 0)), Limits.from_mapping(taint)
        self.telemetry = Sampler(device.telemetry_sources(), recording.part, keep=self._remeasure > 0)
        self._on_host = plan.clock == "wall"
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
        thorough = self._remeasure > 0
        self.telemetry.begin_cell(thorough)
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
    ) -> tuple[FioResult, dict[str, Any]]:
        """Run a cell and check its evidence.

        Raise CellFailed with the workload's name when a check fails. A tainted cell is kept with a line `tainted` in
        the journal and repeated, as often as the study allows. The last attempt counts, tainted or not. `place`
        identifies the cell of the plan in the journal. `before_again` is called with the facts of each attempt that
        another one follows.
        """
        lines = [line for line in self.recording.journal() if line["event"] == "tainted"] if self._remeasure else []
        done = sum(all(line[key] == value for key, value in place.items()) for line in lines)
        for attempt in range(done, self._remeasure + 1):
            result, facts = self._attempt(name if attempt == 0 else f"{name}-again{attempt}", cell, on_tick)
            reasons = self._taints(facts) if attempt < self._remeasure else []
            if not reasons:
                break
            self.recording.append("tainted", **place, workload=cell.to_mapping(), metrics=metrics(result),
                                  reasons=reasons, **facts)  # fmt: skip
            before_again(facts)
        return result, facts

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
        if "started_s" not in facts:
            return []
        summary = summarise(self.telemetry.kept(), facts["started_s"], facts["ended_s"])
        return taints({**summary, **foreign_writes(facts)}, self._limits)


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
