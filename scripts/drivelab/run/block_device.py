"""A block device driven by fio: a real drive, or a virtual drive in real time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.core.errors import CellFailed, UserError
from drivelab.core.lock import Hold
from drivelab.core.programs import Tick, Timing
from drivelab.drives import described, guard, nvme, sysfs, write_cache
from drivelab.drives.approved import HeldDevice
from drivelab.drives.arrays import CLEAN, ArrayState, array_state
from drivelab.drives.composition import settings_of
from drivelab.drives.node import path_of
from drivelab.drives.nvme import open_character_device
from drivelab.drives.purge import AUTO, purge
from drivelab.drives.sysfs import Wear
from drivelab.drives.target import Target, of_drive
from drivelab.fio.early_end import StopRule
from drivelab.fio.job import job_text, refuse_submission
from drivelab.fio.job_run import choose_engine, prepare, run_fio
from drivelab.fio.prepared import Prepared as PreparedFio
from drivelab.fio.prepared import can_prepare
from drivelab.host.machine import Machine
from drivelab.host.placement import Placement, placement
from drivelab.plan.cell import Cell
from drivelab.plan.drive_sheet import load_sheet
from drivelab.plan.plan import Plan, drive_in_sheet
from drivelab.plan.subject_kinds import DRIVE
from drivelab.run.device import Device, LastUser, reset_of_model
from drivelab.telemetry.host import siblings
from drivelab.telemetry.power import Meter
from drivelab.telemetry.sampler import Source
from drivelab.telemetry.sources import composed_sources, sources_for
from drivelab.trace.capturing.applications import Application, refuse_small_drive
from drivelab.virtual import manage
from drivelab.virtual.model import DriveModel

# Replays import numpy, pandas and pyarrow, which the other stages do not need: they import what replays where they do.
if TYPE_CHECKING:
    from drivelab.application.timed import Run
    from drivelab.replay.native import EngineOptions
    from drivelab.replay.prepare import Prepared


@dataclass(frozen=True)
class _Next:
    """A prepared cell."""

    cell: Cell
    seed: int
    job: str
    folder: os.stat_result
    fio: PreparedFio

    def is_for(self, cell: Cell, directory: Path, seed: int) -> bool:
        return (cell, seed) == (self.cell, self.seed) and os.path.samestat(self.folder, directory.stat())


class BlockDevice(Device):
    """A drive, partition, volume or array, driven by fio and drivelab's engine."""

    undoes = False
    lasts = True

    def __init__(self, approved: HeldDevice, plan: Plan, user: LastUser, hold: Hold) -> None:
        self._user, self.last_user = user, user.before
        self._approved, self._drive, self._hold = approved, plan.drive, hold
        self._sheet = Path(plan.context["drives_sheet"])
        self._model = plan.subject["drive"].get("virtual")
        self._meter = Meter.from_mapping(plan.context.get("meter", {}))
        self._wanted_state = str(plan.subject.get("array_state", CLEAN))
        self._simultaneous: list[str] = plan.subject.get("simultaneous", [])
        self.name = approved.name
        self.identified = approved.identity
        self.engine = choose_engine(approved.path, approved.device)
        self.capacity_bytes = sysfs.capacity_bytes(approved.name)
        self.logical_block_bytes = sysfs.logical_block_bytes(approved.name)
        self.settings_of: Sequence[str] = settings_of(approved.name)
        self._placement = (
            placement(Machine(), approved.name) if approved.kind == DRIVE.name
            else Placement("left to the scheduler: the device is not a whole drive")
        )  # fmt: skip
        self.placement = self._placement.reason
        self._polls = sysfs.has_poll_queues(approved.name)
        self._next: _Next | None = None
        self._character_device: int | None = None
        """Open descriptor, if a cell sends NVMe commands."""

    def take_over(self) -> None:
        self._user.enter()

    def identity(self) -> dict[str, Any]:
        facts: dict[str, Any] = {**described.describe(self._approved), "node": self._approved.device}
        if self._approved.virtual is not None:
            return facts | DriveModel.from_mapping(self._approved.virtual, self._model).describe()
        states = {write_cache.state(name) for name in self._approved.disks or (self._approved.name,)}
        return facts | {"drive_write_cache": states.pop() if len(states) == 1 else None}

    def wear(self) -> Wear:
        if self._approved.disks:
            return described.composed_wear(self._approved)
        lifetime: int | None = None
        if self._approved.virtual is not None:
            lifetime = manage.counters(self._approved.virtual)["host_write_bytes"]
        elif self._approved.name.startswith("nvme"):
            lifetime = nvme.lifetime_bytes_written(self._approved.path)
        return replace(sysfs.wear(self._approved.name), lifetime_bytes_written=lifetime)

    def compare_neighbours(self) -> dict[str, Any] | None:
        neighbours = self._approved.neighbours
        return None if neighbours is None else neighbours.verify(self._drive)

    def array_state(self) -> ArrayState | None:
        return array_state(self._approved.name) if self._approved.disks else None

    def sectors_written(self) -> int:
        """Return 0 for a device that is gone; fio reports what happened to it."""
        try:
            return sysfs.wear(self._approved.name).sectors_written
        except UserError:
            return 0

    def kernel_writes(self) -> dict[str, int] | None:
        """Return None for a device that is gone or has its counters switched off."""
        return sysfs.writes(self._approved.name)

    def flush(self) -> None:
        """Flush the drive's cache with fsync(2) (block/fops.c, blkdev_fsync).

        Nothing is written through the page cache, so nothing else is flushed. The device is opened read-only, because
        udev probes a device again after it was open for writing.
        """
        descriptor = os.open(self._approved.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise CellFailed(f"the drive did not flush its cache: {error.strerror}") from None
        finally:
            os.close(descriptor)

    def purge(self, method: str, say: Callable[[str, float], None]) -> dict[str, Any]:
        """Purge the drive; a virtual drive's model does it unless the study names a method."""
        if self._approved.virtual is None or method != AUTO:
            done = purge(self._approved, method, lambda text, fraction: say(text, fraction or 0.0))
            self.capacity_bytes = sysfs.capacity_bytes(self._approved.name)
            return done
        manage.purge(self._approved.virtual)
        return reset_of_model(manage.counters(self._approved.virtual))

    def run(
        self, cell: Cell, directory: Path, seed: int, on_tick: Tick, until: StopRule | None = None
    ) -> Timing | None:
        following = self._take(cell, directory, seed)
        job = self._job(cell, seed) if following is None else following.job
        # The kernel counts no NVMe commands, so nothing tells whether they complete.
        watched = None if cell.nvme else self._approved.name
        return run_fio(watched, job, directory, runtime_s=cell.runtime_s, slice_s=cell.slice_s, on_tick=on_tick,
                       on_hang=self._abort, until=until, inherited=[self._opened(cell)],
                       prepared=None if following is None else following.fio)  # fmt: skip

    def _opened(self, cell: Cell) -> int:
        """Return the descriptor through which a cell's I/Os reach the drive."""
        if not cell.nvme:
            return self._approved.node.descriptor
        if self._character_device is None:
            self._character_device = open_character_device(self._approved)
        return self._character_device

    def _job(self, cell: Cell, seed: int) -> str:
        device, block_bytes = path_of(self._opened(cell)), self.logical_block_bytes
        refuse_submission(cell, self.engine, f"drive '{self._drive}'", polls=self._polls)
        cpus = self._placement.cpus(cell.total_threads)
        job = job_text(cell, device, self.engine, self.capacity_bytes, block_bytes, seed, cpus=cpus)
        return self._target.as_comment + job

    def can_prepare(self) -> bool:
        return can_prepare()

    def prepare(self, cell: Cell, directory: Path, seed: int) -> None:
        self.forget()
        job = self._job(cell, seed)
        opened = self._opened(cell)
        fio = prepare(job, directory, path_of(opened), [opened])
        self._next = _Next(cell, seed, job, directory.stat(), fio)

    def _take(self, cell: Cell, directory: Path, seed: int) -> _Next | None:
        """Return what is prepared for this cell in this folder; else end it."""
        if self._next is not None and self._next.is_for(cell, directory, seed):
            following, self._next = self._next, None
            return following
        self.forget()
        return None

    def forget(self) -> None:
        if self._next is not None:
            self._next.fio.discard()
            self._next = None

    def close(self) -> None:
        """End what is prepared, and close what a cell opened."""
        self.forget()
        if self._character_device is not None:
            os.close(self._character_device)
            self._character_device = None

    def replay(self, prepared: Prepared, directory: Path, options: EngineOptions, on_tick: Tick) -> Timing | None:
        from drivelab.replay import once

        return once.run(self._target, prepared, directory, options, on_tick, self._abort)

    def issue(self, schedule: Path, directory: Path, options: EngineOptions, on_tick: Tick) -> Timing | None:
        from drivelab.replay import native

        target = self._target
        return native.run_engine(target.path, target.identity, schedule, directory, options, on_tick=on_tick,
                                 on_hang=self._abort)  # fmt: skip

    @contextmanager
    def application(self, spec: Application, stand_in: Prepared | None) -> Iterator[Run]:
        """Run on the drive itself; only its file system holds the drive during the run.

        Raises UserError when the drive may no longer be written to or is too small, CellFailed when its file
        system or the application's own preparations fail.
        """
        from drivelab.application import timed

        with self._hold.released():
            row = load_sheet(self._sheet)[drive_in_sheet(self._drive)]
            guard.confirm(row, self._approved)
            refuse_small_drive(spec, sysfs.capacity_bytes(self._approved.name), f"drive '{self._drive}'")
            try:
                with timed.ready(spec, self._approved.device) as run:
                    yield run
            except UserError as error:
                raise CellFailed(f"application '{spec.name}': {error}") from None

    def telemetry_sources(self) -> list[Source]:
        if self._approved.disks:
            return composed_sources(self._approved, self._meter, self._wanted_state)
        if self._simultaneous:
            servers = [drive.pid for drive in manage.status() if drive.serial in self._simultaneous]
            return sources_for(self._approved.name, self._meter, servers, siblings)
        record = manage.find_by_device(self._approved.device)
        return sources_for(self._approved.name, self._meter, [record.pid] if record is not None else ())

    @property
    def _target(self) -> Target:
        return of_drive(self._approved, self._drive)

    def _abort(self) -> None:
        """Stop a virtual drive that no longer answers, to free a fio that waits in the kernel."""
        if self._approved.virtual is not None:
            manage.stop(self._approved.virtual, force=True)
