"""One cell: run it, judge its evidence, know what the journal says of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from drivelab.drives.host import cpu_times, steal_pct
from drivelab.fio.result import CellFailed, FioResult, read_result
from drivelab.fio.run import Timing
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.recording.writer import Recording
from drivelab.stages.device import Device


class Bench:
    """Runs cell after cell on one device, keeps the time between them short and puts it on record."""

    def __init__(self, plan: Plan, device: Device, recording: Recording) -> None:
        self.plan, self.device, self.recording = plan, device, recording
        self._ended_s: float | None = None

    def seed(self, name: str) -> int:
        """Seed of fio's random numbers: another one for each cell, the same for each repetition of the plan."""
        text = f"{self.plan.digest}/{self.plan.run}/{name}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")

    def run(self, name: str, act: Callable[[Path], Timing | None]) -> tuple[Path, dict[str, Any]]:
        """Let `act` leave evidence in the folder `name`; returns the folder and the journal's facts about the time."""
        directory = self.recording.directory(name)
        before = cpu_times()
        timing = act(directory)
        facts: dict[str, Any] = {"directory": name}
        if timing is not None:
            facts["steal_pct"] = round(steal_pct(before, cpu_times()), 2)
            if self._ended_s is not None:
                facts["gap_ms"] = round(1000 * (timing.started_s - self._ended_s), 3)
            self._ended_s = timing.ended_s
        return directory, facts

    def run_cell(self, name: str, cell: Cell, on_tick: Callable[[float], None]) -> tuple[FioResult, dict[str, Any]]:
        """Run a cell and judge its evidence; raises CellFailed, naming the workload, when it does not hold."""
        try:
            directory, facts = self.run(name, lambda folder: self.device.run(cell, folder, self.seed(name), on_tick))
            return read_result(directory, cell), facts
        except CellFailed as failure:
            raise CellFailed(f"{cell.label} in {name}: {failure}") from None


def metrics(result: FioResult) -> dict[str, float]:
    """What stop rules look at."""
    return {
        "iops": result.iops,
        "bandwidth_mib_s": result.bandwidth_mib_s,
        "mean_latency_us": result.mean_latency_us,
    }
