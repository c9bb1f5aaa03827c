"""A virtual drive on the virtual clock: simulated time, no root, no block device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.core.programs import Tick
from drivelab.drives.identified import Identity
from drivelab.drives.sysfs import SECTOR_BYTES, VIRTUAL_CLOCK, Wear
from drivelab.fio.early_end import StopRule
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.recording.writer import Recording, write_json
from drivelab.run.device import Device, LastUser, reset_of_model
from drivelab.virtual.model import DriveModel
from drivelab.virtual_clock.cells import VirtualClockDrive

# Replays import pandas and pyarrow, which the other stages do not need: they import what replays where they do.
if TYPE_CHECKING:
    from drivelab.application.timed import Run
    from drivelab.replay.native import EngineOptions
    from drivelab.replay.prepare import Prepared
    from drivelab.trace.capturing.applications import Application

_DAY_US = 86400e6
"""Start offset between runs of a measurement: at the same simulated time, all runs would be identical, I/O by I/O."""


class ClockDevice(Device):
    """The drive's state lives in a file between stages."""

    name = ""
    engine = "virtual clock"
    undoes = True
    lasts = True
    settings_of: Sequence[str] = ()

    def __init__(self, plan: Plan, state_file: Path, user: LastUser) -> None:
        self._user, self.last_user = user, user.before
        self._model = DriveModel.from_mapping(plan.drive, plan.subject["drive"]["virtual"])
        recording = Recording(plan)
        place = (lambda: f"{plan.recording} {recording.lines_of_use()}") if self.undoes else (lambda: None)
        self._drive = VirtualClockDrive(self._model, state_file, place)
        self._begin_us = (plan.run - 1) * _DAY_US
        self.identified = Identity(self._model.serial, self._model.capacity_bytes)
        self.capacity_bytes = self._model.capacity_bytes
        self.logical_block_bytes = self._model.logical_block_bytes

    def take_over(self) -> None:
        self._user.enter()

    def identity(self) -> dict[str, Any]:
        return {"write_cache": "write back", "capacity_bytes": self.capacity_bytes,
                "logical_block_bytes": self.logical_block_bytes, **self._model.describe()}  # fmt: skip

    def wear(self) -> Wear:
        counters = self._drive.counters()
        return Wear(VIRTUAL_CLOCK, VIRTUAL_CLOCK, counters["host_write_bytes"] // SECTOR_BYTES,
                    counters["trimmed_bytes"] // SECTOR_BYTES)  # fmt: skip

    def flush(self) -> None:
        self._drive.flush()

    def idle(self, seconds: float) -> None:
        self._drive.idle(seconds)

    def purge(self, method: str, say: Callable[[str, float], None]) -> dict[str, Any]:
        self._drive.purge(self._begin_us)
        return reset_of_model(self._drive.counters())

    def run(self, cell: Cell, directory: Path, seed: int, on_tick: Tick, until: StopRule | None = None) -> None:
        self._drive.run(cell, directory, until)

    def replay(self, prepared: Prepared, directory: Path, options: EngineOptions, on_tick: Tick) -> None:
        """Replay by the model; no request fails."""
        from drivelab.replay.engine_records import FUA, open_schedule
        from drivelab.replay.once import FACTS
        from drivelab.virtual_clock.replaying import AS_MODELLED

        self.issue(prepared.schedule, directory, options, on_tick)
        present = {
            "fua": (open_schedule(prepared.schedule).records["flags"] & FUA).any(),
            "write-zeroes": prepared.counts["write-zeroes"]["requests"],
        }
        remarks = [f"no {name}: on the virtual clock {remark}" for name, remark in AS_MODELLED.items() if present[name]]
        write_json(directory / FACTS, {"engine": self.engine, "remarks": remarks})

    def issue(self, schedule: Path, directory: Path, options: EngineOptions, on_tick: Tick) -> None:
        self._drive.replay_schedule(schedule, directory, depth_limit=options.depth_limit, runtime_s=options.runtime_s)

    @contextmanager
    def application(self, spec: Application, stand_in: Prepared | None) -> Iterator[Run]:
        """Replay the application's trace instead, because no program runs in simulated time."""
        from drivelab.replay.native import EngineOptions

        assert stand_in is not None  # the plan has refused an application without one

        def replayed(directory: Path, on_tick: Tick) -> None:
            self.replay(stand_in, directory, EngineOptions(), on_tick)

        yield replayed

    def telling(self, recording: Path) -> AbstractContextManager[None]:
        return self._drive.telling(recording)
