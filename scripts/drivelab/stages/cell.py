"""One cell: run it, judge its evidence and its telemetry, know what the journal says of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from drivelab.analysis.foreign_writes import KERNEL, foreign_writes, own_writes
from drivelab.analysis.taint import Limits, taints
from drivelab.fio.result import CellFailed, FioResult, read_result
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.process import Timing
from drivelab.recording.writer import Recording
from drivelab.stages.device import Device
from drivelab.stages.schedules import Schedules
from drivelab.telemetry.sampler import Sampler
from drivelab.telemetry.window import summarise


class Bench:
    """Runs cell after cell on one device, keeps the time between them short and puts it on record."""

    def __init__(self, plan: Plan, device: Device, recording: Recording, schedules: Schedules) -> None:
        self.plan, self.device, self.recording, self.schedules = plan, device, recording, schedules
        taint = plan.subject.get("taint", {})
        self._remeasure, self._limits = int(taint.get("remeasure", 0)), Limits.from_mapping(taint)
        self.telemetry = Sampler(device.telemetry_sources(), recording.part, keep=self._remeasure > 0)
        self._ended_s: float | None = None

    def run(self, name: str, act: Callable[[Path], Timing | None]) -> tuple[Path, dict[str, Any]]:
        """Let `act` leave evidence in the folder `name`; returns the folder and the journal's facts about the time.

        The host's counters are read at both edges, so that they tell of a cell however short. Where cells are judged
        at once, the drive's are too, which takes some more time between cells. The kernel's counters of writes are read
        immediately before and after `act`; the facts have their rise, for `foreign_writes`.
        """
        directory = self.recording.directory(name)
        thorough = self._remeasure > 0
        self.telemetry.begin_cell(thorough)
        before = self.device.kernel_writes()
        timing = act(directory)
        after = self.device.kernel_writes()
        facts: dict[str, Any] = {"directory": name}
        if before is not None and after is not None:
            facts[KERNEL] = {kind: after[kind] - before[kind] for kind in after}
        if timing is not None:
            self.telemetry.edge(thorough)
            facts["started_s"] = self.telemetry.unix_s(timing.started_s)
            facts["ended_s"] = self.telemetry.unix_s(timing.ended_s)
            if self._ended_s is not None:
                facts["gap_ms"] = round(1000 * (timing.started_s - self._ended_s), 3)
            self._ended_s = timing.ended_s
        return directory, facts

    def run_cell(
        self,
        name: str,
        cell: Cell,
        on_tick: Callable[[float], None],
        place: dict[str, int],
        before_again: Callable[[dict[str, Any]], None] = lambda facts: None,
    ) -> tuple[FioResult, dict[str, Any]]:
        """Run a cell and judge its evidence; raises CellFailed, naming the workload, when it does not hold.

        A cell that telemetry taints is kept with a line `tainted` in the journal and run again, as often as the study
        wants it; the last one counts, tainted or not. `place` says in the journal which cell of the plan it is.
        `before_again` is called with the facts of each attempt that is followed by another.
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
                name, lambda folder: self.device.run(cell, folder, self.plan.seed(name), on_tick)
            )
            result = read_result(directory, cell)
            return result, {**facts, **own_writes(result.write.bytes), **io_span(result)}
        except CellFailed as failure:
            raise CellFailed(f"{cell.label} in {name}: {failure}") from None

    def _taints(self, facts: dict[str, Any]) -> list[str]:
        if "started_s" not in facts:
            return []
        summary = summarise(self.telemetry.kept(), facts["started_s"], facts["ended_s"])
        return taints({**summary, **foreign_writes(facts)}, self._limits)


def io_span(result: FioResult) -> dict[str, float]:
    """Start and end of the I/O of a run for the journal, Unix time in seconds; virtual time on the virtual clock.

    fio says when it printed its last document and how long the I/O had lasted; it prints when its threads have ended
    and their logs are written, so both may be told late by that time, tens of milliseconds.
    """
    started_s = result.started.timestamp()
    return {"io_started_s": round(started_s, 3), "io_ended_s": round(started_s + result.runtime_s, 3)}


def metrics(result: FioResult) -> dict[str, float]:
    """What stop rules look at."""
    return {
        "iops": result.iops,
        "bandwidth_mib_s": result.bandwidth_mib_s,
        "mean_latency_us": result.mean_latency_us,
    }
