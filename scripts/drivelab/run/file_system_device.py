"""Make a file system on a drive, and measure a file on it: what a platform with `file_system` measures."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from drivelab.core import programs
from drivelab.core.errors import CellFailed, UserError
from drivelab.core.lock import Hold
from drivelab.core.programs import Tick, Timing, packages
from drivelab.core.units import format_amount
from drivelab.drives import guard, sysfs
from drivelab.drives.approved import HeldDevice
from drivelab.drives.openers import Host
from drivelab.drives.tools import Output
from drivelab.fio.early_end import StopRule
from drivelab.host.stack.file_systems import mounts
from drivelab.host.stack.stack import layers
from drivelab.plan.cell import Cell
from drivelab.plan.drive_sheet import load_sheet
from drivelab.plan.file_system import BLOCK_BYTES, FileSystem
from drivelab.plan.plan import Plan
from drivelab.run import guest
from drivelab.run.block_device import BlockDevice
from drivelab.run.device import LastUser
from drivelab.run.guest_device import GuestDevice
from drivelab.trace.capturing import guardian
from drivelab.trace.capturing.mounts import checked, mounted, program

_FORCED = {"ext4": ("-q", "-F"), "xfs": ("-q", "-f"), "btrfs": ("-q", "-f"), "f2fs": ("-q", "-f")}
_NOT_LATER = "lazy_itable_init=0,lazy_journal_init=0"
"""Extended options of mke2fs(8): otherwise the kernel initialises inode tables during the measurement."""


def refuse_unready(file_system: FileSystem, filesystems: Path = Path("/proc/filesystems")) -> None:
    """Raise UserError if this process is not root, or mkfs or the kernel's file system is missing."""
    kind = file_system.type
    if os.geteuid() != 0:
        raise UserError(f"making and mounting {kind} needs root. Nothing was written. Run drivelab with sudo.")
    if not Path(program(f"mkfs.{kind}")).is_absolute():
        raise UserError(
            f"the program mkfs.{kind} is not installed, which makes the file system {kind}. Nothing was written. "
            f"On Debian: apt-get install {packages()[f'mkfs.{kind}']}"
        )
    if not _in_kernel(kind, filesystems):
        raise UserError(
            f"the running kernel {platform.release()} has no file system {kind}, built in or as a module. Nothing was "
            f"written. Boot a kernel that has it, or leave {kind} out of the study."
        )


def _in_kernel(kind: str, filesystems: Path) -> bool:
    """Return whether the kernel can mount a type; mount(8) loads its module. Loads nothing."""
    if kind in (line.split()[-1] for line in filesystems.read_text().splitlines() if line):
        return True
    modprobe = program("modprobe")
    return Path(modprobe).is_absolute() and programs.run([modprobe, "--dry-run", "--quiet", kind]).returncode == 0


def arguments(file_system: FileSystem) -> list[str]:
    """Return the arguments of mkfs, without the device: what drivelab needs, then those of the study.

    mke2fs(8) takes the last -E only, so all of them become one.
    """
    words = list(file_system.mkfs)
    if file_system.type != "ext4":
        return [*_FORCED[file_system.type], *words]
    extended, others = [_NOT_LATER], []
    while words:
        word = words.pop(0)
        if word == "-E" and words:
            extended.append(words.pop(0))
        elif word.startswith("-E") and word != "-E":
            extended.append(word.removeprefix("-E"))
        else:
            others.append(word)
    return [*_FORCED["ext4"], "-E", ",".join(extended), *others]


def make(file_system: FileSystem, device: str) -> dict[str, str]:
    """Make the file system on a whole device, and return the columns of table `drives` that tell how.

    Signatures of earlier file systems are removed, because mkfs overwrites only its own places. mkfs runs in an empty
    folder, so that no word of the study names a file. Raises UserError with mkfs's message.
    """
    checked(["wipefs", "--all", "--quiet", device], f"removing old signatures from {device}")
    words = arguments(file_system)
    path = program(f"mkfs.{file_system.type}")
    with TemporaryDirectory() as empty:
        checked([path, *words, device], f"making the file system {file_system.type} on {device}", Path(empty), line=0)
    return {"file_system": file_system.type, "mkfs": f"{_version(path)}; {' '.join(words)}"}


def _version(mkfs: str) -> str:
    """Return the first line of a mkfs about its version, which some print to standard error."""
    done = programs.run([mkfs, "-V"])
    return Output(done.returncode, done.stdout, done.stderr).words


def options_of(mount: Path) -> str:
    """Return the mount options in force, with those that the kernel adds."""
    (options,) = [found.options for found in mounts(Host()) if found.point == str(mount)]
    return ",".join(options)


if TYPE_CHECKING:
    from drivelab.application.timed import Run
    from drivelab.replay.native import EngineOptions
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
            made = make(self._spec, self._approved.device)
            mount = self._stack.enter_context(mounted(self._spec.type, self._approved.device, self._spec.mount))
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
            "mount_options": options_of(mount),
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

    def replay(self, prepared: Prepared, directory: Path, options: EngineOptions, on_tick: Tick) -> Timing | None:
        return self._made.replay(prepared, directory, options, on_tick)

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
