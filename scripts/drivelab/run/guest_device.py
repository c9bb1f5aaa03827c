"""A temporary file, or a device for reading only, driven by fio: drivelab measures it without taking it over."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from drivelab.core.errors import CellFailed, UserError
from drivelab.core.programs import Tick, Timing
from drivelab.drives import node, sysfs
from drivelab.drives.identified import Identity
from drivelab.drives.sysfs import Wear, read_text
from drivelab.fio.early_end import StopRule
from drivelab.fio.job import job_text, refuse_submission
from drivelab.fio.job_run import choose_engine, run_fio
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.run import guest
from drivelab.run.device import Device
from drivelab.run.guest import Guest
from drivelab.telemetry.host import siblings
from drivelab.telemetry.power import Meter
from drivelab.telemetry.sampler import Source
from drivelab.telemetry.sources import sources_for

if TYPE_CHECKING:
    from drivelab.application.timed import Run
    from drivelab.replay.native import EngineOptions
    from drivelab.replay.prepare import Prepared
    from drivelab.trace.capturing.applications import Application


class GuestDevice(Device):
    """A temporary file ends with this object's process.

    Other programs may write to the same disk, so its counters say nothing of this measurement.
    """

    undoes = False
    lasts = False
    last_user: str | None = None

    def __init__(self, opened: Guest, plan: Plan, on_hang: Callable[[], None] | None = None) -> None:
        """Drive what is open; `on_hang`, see `run_fio`, tells that only drivelab uses the disk of a file."""
        self._guest, self._on_hang = opened, on_hang
        self._meter = Meter.from_mapping(plan.context.get("meter", {}))
        self._simultaneous = "simultaneous" in plan.subject
        self.name = opened.disk
        self.settings_of: Sequence[str] = [opened.disk] if opened.disk else []
        self.identified = Identity(str(plan.subject["drive"]["serial"]), opened.capacity_bytes)
        self.engine = choose_engine(opened.path, opened.label, direct=opened.direct)
        self.capacity_bytes = opened.capacity_bytes
        self.logical_block_bytes = opened.logical_block_bytes

    def take_over(self) -> None:
        """Do nothing: drivelab does not own the place, and other programs use it too."""

    def identity(self) -> dict[str, Any]:
        return {"node": self._guest.label, **self._guest.facts}

    def wear(self) -> Wear:
        """Return counters that no seal relies on, see `lasts`: the file's own space, or zero for a device."""
        about = os.fstat(self._guest.descriptor)
        boot_id = read_text(Path("/proc/sys/kernel/random/boot_id")) or "unknown"
        return Wear(boot_id, self._guest.identity, about.st_blocks if self._guest.folder else 0, 0)

    def purge(self, method: str, say: Callable[[str, float], None]) -> NoReturn:
        raise UserError(
            f"{self._guest.label} cannot be purged, because drivelab does not own it. Choose a protocol without a "
            "purge, or set 'purge: none' in the study."
        )

    def flush(self) -> None:
        try:
            os.fsync(self._guest.descriptor)
        except OSError as error:
            raise CellFailed(f"{self._guest.label} was not flushed: {error.strerror}") from None

    def run(
        self, cell: Cell, directory: Path, seed: int, on_tick: Tick, until: StopRule | None = None
    ) -> Timing | None:
        if cell.nvme:
            raise CellFailed(f"{cell.label} needs a drive, not {self._guest.label}")
        opened, folder = self._guest, self._guest.folder
        polls = opened.name is not None and sysfs.has_poll_queues(opened.name)
        refuse_submission(cell, self.engine, opened.label, polls=polls)
        descriptor, capacity_bytes = opened.descriptor, self.capacity_bytes
        if cell.synchronous and folder is not None:  # it appends, as long as there is room
            descriptor, capacity_bytes = guest.nameless(folder, f"{folder}"), guest.room_bytes(folder)
            cell = replace(cell, range_bytes=None, range_share=1.0)
        try:
            job = job_text(
                cell, node.path_of(descriptor), self.engine, capacity_bytes, self.logical_block_bytes, seed,
                file=folder is not None, direct=opened.direct,
            )  # fmt: skip
            comment = f"# {opened.label} ({opened.identity})\n"
            own = self._on_hang is not None
            return run_fio(
                opened.disk if own else opened.name, comment + job, directory, runtime_s=cell.runtime_s,
                slice_s=cell.slice_s, on_tick=on_tick, on_hang=self._on_hang or (lambda: None), idles=own, until=until,
                inherited=[descriptor], readonly=folder is None,
            )  # fmt: skip
        finally:
            if descriptor != opened.descriptor:
                os.close(descriptor)

    def replay(self, prepared: Prepared, directory: Path, options: EngineOptions, on_tick: Tick) -> Timing | None:
        raise CellFailed(f"a replay needs a drive, not {self._guest.label}")

    def issue(self, schedule: Path, directory: Path, options: EngineOptions, on_tick: Tick) -> Timing | None:
        raise CellFailed(f"a replay needs a drive, not {self._guest.label}")

    def application(self, spec: Application, stand_in: Prepared | None) -> AbstractContextManager[Run]:
        raise CellFailed(f"an application needs a drive, not {self._guest.label}")

    def telemetry_sources(self) -> list[Source]:
        return sources_for(self.name, self._meter, beside=siblings if self._simultaneous else tuple)
