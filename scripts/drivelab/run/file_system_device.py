"""A file on a file system that drivelab makes on a drive: what a platform with `file_system` measures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.core.errors import CellFailed, UserError
from drivelab.core.lock import Hold
from drivelab.core.programs import Tick, Timing
from drivelab.core.units import format_amount
from drivelab.drives import guard, sysfs
from drivelab.drives.approved import HeldDevice
from drivelab.fio.early_end import StopRule
from drivelab.host.stack.stack import layers
from drivelab.plan.cell import Cell
from drivelab.plan.drive_sheet import load_sheet
from drivelab.plan.file_system import BLOCK_BYTES, FileSystem
from drivelab.plan.plan import Plan
from drivelab.run import file_system as making
from drivelab.run import guest
from drivelab.run.block_device import BlockDevice
from drivelab.run.device import LastUser
from drivelab.run.guest_device import GuestDevice
from drivelab.trace.capturing import guardian, mounts

if TYPE_CHECKING:
    from drivelab.application.timed import Run
    from drivelab.replay.native import EngineOptions
    from drivelab.replay.once import Manner
    from drivelab.replay.prepare import Prepared
    from drivelab.trace.capturing.applications import Application


class FileSystemDevice(BlockDevice):
    """Implements `drivelab.run.device.Device`: purge and counters are the drive's, cells run on the file.

    Its state does not last. A file system that is mounted and unmounted between stages writes to the drive each time,
    so no seal could tell these writes from others'. The measuring process therefore prepares everything itself.
    """

    lasts = False

    def __init__(
        self, approved: HeldDevice, plan: Plan, user: LastUser, hold: Hold, spec: FileSystem, stack: ExitStack
    ) -> None:
        super().__init__(approved, plan, user, hold)
        self._plan, self._spec, self._stack = plan, spec, stack
        self._file: GuestDevice | None = None
        self._facts: dict[str, Any] = {}

    def make_file_system(self) -> dict[str, Any]:
        """Make and mount the file system, and a sparse file on it, which the fill then writes.

        If this process is killed, a guardian unmounts. Raises UserError when the drive may no longer be written to, or
        when mkfs, mounting or the space for the file fails.
        """
        self._stack.enter_context(self._hold.released())
        guard.confirm(load_sheet(self._sheet)[self._plan.sheet_drive], self._approved)
        self._stack.enter_context(guardian.watch())
        where = f"drive '{self._drive}'"
        try:
            made = making.make(self._spec, self._approved.device)
            mount = self._stack.enter_context(
                mounts.mounted(self._spec.type, self._approved.device, options=self._spec.mount)
            )
        except UserError as error:
            raise UserError(
                f"{where}: {str(error).rstrip('.')}. Correct 'mkfs' or 'mount' of the platform and run again."
            ) from None
        size_bytes = self._spec.file_bytes(sysfs.capacity_bytes(self._approved.name))
        if (room_bytes := guest.room_bytes(mount)) < size_bytes:
            raise UserError(
                f"{where}: a file of {format_amount(size_bytes)} does not fit on the new file system "
                f"{self._spec.type}, which has room for {format_amount(room_bytes)}. Choose a smaller 'file' for the "
                "platforms of the study."
            )
        opened = self._stack.enter_context(guest.file_in(mount, size_bytes, where))
        self._file = GuestDevice(replace(opened, disk=self._approved.name), self._plan, self._abort)
        self.engine, self.capacity_bytes, self.logical_block_bytes = self._file.engine, size_bytes, BLOCK_BYTES
        below = layers(mount)
        self._facts = {
            **made,
            "mount_options": making.options_of(mount),
            "file_bytes": size_bytes,
            "composition": opened.facts["composition"],
            "cautions": [caution for layer in below[:1] for caution in layer.cautions],
        }
        return self._facts

    def identity(self) -> dict[str, Any]:
        return {**super().identity(), **self._facts}

    def kernel_writes(self) -> None:
        """Return None: the file system writes journal and metadata too, which no counter tells from others' writes."""

    def flush(self) -> None:
        self._made.flush()

    def can_prepare(self) -> bool:
        return False

    def run(
        self, cell: Cell, directory: Path, seed: int, on_tick: Tick, until: StopRule | None = None
    ) -> Timing | None:
        return self._made.run(cell, directory, seed, on_tick, until)

    def replay(self, prepared: Prepared, directory: Path, manner: Manner, on_tick: Tick) -> Timing | None:
        return self._made.replay(prepared, directory, manner, on_tick)

    def issue(self, schedule: Path, directory: Path, options: EngineOptions, on_tick: Tick) -> Timing | None:
        return self._made.issue(schedule, directory, options, on_tick)

    @contextmanager
    def application(self, spec: Application, stand_in: Prepared | None) -> Iterator[Run]:
        with self._made.application(spec, stand_in) as run:
            yield run

    @property
    def _made(self) -> GuestDevice:
        if self._file is None:
            raise CellFailed(f"there is no file system {self._spec.type} yet")
        return self._file


@contextmanager
def opened(held: HeldDevice, plan: Plan, user: LastUser, hold: Hold, spec: FileSystem) -> Iterator[FileSystemDevice]:
    """Yield the device of a plan with a file system; unmount at the end whatever was mounted."""
    with ExitStack() as stack:
        yield FileSystemDevice(held, plan, user, hold, spec, stack)
