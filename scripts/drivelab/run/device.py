"""The device under test as the stages see it, approved by the guard and locked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from drivelab.core.errors import UserError
from drivelab.core.files import write_atomic
from drivelab.core.lock import exclusive
from drivelab.core.private import make_private, run_directory
from drivelab.core.programs import Tick, Timing
from drivelab.drives import guard
from drivelab.drives.approved import HeldDevice
from drivelab.drives.arrays import CLEAN, ArrayState, array_state
from drivelab.drives.identified import Identity
from drivelab.drives.sysfs import Wear
from drivelab.fio.early_end import StopRule
from drivelab.plan.cell import Cell
from drivelab.plan.drive_sheet import load_sheet
from drivelab.plan.fitting import refuse_kind
from drivelab.plan.hosts import refuse_elsewhere
from drivelab.plan.plan import Plan
from drivelab.plan.subject_kinds import DRIVE, KINDS
from drivelab.run import consent, guest, write_cache
from drivelab.run.consent import refuse_foreign_commands
from drivelab.telemetry.sampler import Source
from drivelab.virtual.kept_state import KEPT_DRIVES

if TYPE_CHECKING:
    from drivelab.application.timed import Run
    from drivelab.replay.native import EngineOptions
    from drivelab.replay.prepare import Prepared
    from drivelab.trace.capturing.applications import Application


class Device(Protocol):
    """A drive that this process may write to and that no other process uses.

    The methods with a body suit a subject without neighbours, members, file system, telemetry or counters of its own.
    """

    name: str
    """Kernel name; empty on the virtual clock."""
    identified: Identity
    """What seals and resumed recordings are bound to."""
    last_user: str | None
    """The last recording that drivelab used this drive for, before the present one."""
    undoes: bool
    """Whether opening the drive undoes what has no line in the journal, so that an interruption leaves no trace."""
    lasts: bool
    """Whether the subject keeps its state between processes. A temporary file does not: its measurement neither takes
    over a prepared state nor resumes."""
    engine: str
    """The I/O engine of cells: an ioengine of fio, or `virtual clock`."""
    capacity_bytes: int
    logical_block_bytes: int
    placement: str | None = None
    """Where fio's threads run, in words; None if that was not decided."""
    settings_of: Sequence[str]
    """Kernel names of the devices whose host settings matter: the drive, or a mapping or array and the disks below."""

    def take_over(self) -> None:
        """Enter the plan's recording as the last user, before it changes the drive."""
        ...

    def identity(self) -> dict[str, Any]:
        """Return columns of the table `drives`."""
        ...

    def wear(self) -> Wear:
        """Return the counters for seals."""
        ...

    def compare_neighbours(self) -> dict[str, Any] | None:
        """Compare what lies beside a partition with the beginning of the stage; return the facts, None for others.

        Raises UserError if anything has changed.
        """
        return None

    def array_state(self) -> ArrayState | None:
        """Return the state of the array; None without one."""
        return None

    def sectors_written(self) -> int:
        """Return the kernel's counter from `wear`, which is cheap to read every second."""
        return self.wear().sectors_written

    def kernel_writes(self) -> dict[str, int] | None:
        """Return the kernel's `written_bytes`, `discarded_bytes` and `read_bytes`; None without counters."""
        return None

    def purge(self, method: str, say: Callable[[str, float], None]) -> dict[str, Any]:
        """Purge the drive; return the `method` used and how the result was `verified`."""
        ...

    def make_file_system(self) -> dict[str, Any] | None:
        """Make and mount the file system of the plan and a file on it, which is measured from now on.

        Return the facts for the journal, or None for a plan without one.
        """
        return None

    def flush(self) -> None:
        """Make the drive persist all acknowledged writes."""
        ...

    def idle(self, seconds: float) -> None:
        """Wait without I/O."""
        time.sleep(seconds)

    def run(
        self, cell: Cell, directory: Path, seed: int, on_tick: Tick, until: StopRule | None = None
    ) -> Timing | None:
        """Run one cell and write its evidence to `directory`.

        Return None in simulated time. `until` may end a cell in slices at the end of each slice.
        """
        ...

    def can_prepare(self) -> bool:
        """Return whether `prepare` shortens the gap before a cell."""
        return False

    def prepare(self, cell: Cell, directory: Path, seed: int) -> None:
        """Prepare the cell that `run` probably gets next, in this folder, possibly renamed; do not touch the drive."""
        return

    def forget(self) -> None:
        """End what is prepared."""
        return

    def replay(self, prepared: Prepared, directory: Path, options: EngineOptions, on_tick: Tick) -> Timing | None:
        """Replay a schedule once and write its evidence to `directory`, for `drivelab.replay.once.evaluate`."""
        ...

    def issue(self, schedule: Path, directory: Path, options: EngineOptions, on_tick: Tick) -> Timing | None:
        """Issue the requests of a schedule and write results.bin to `directory`, as drivelab.replay.native does."""
        ...

    def application(self, spec: Application, stand_in: Prepared | None) -> AbstractContextManager[Run]:
        """Provide a fresh file system, and yield a function that runs the application's command once on it.

        On the virtual clock the function replays `stand_in` instead: a trace of the application, prepared for this
        drive.
        """
        ...

    def telemetry_sources(self) -> list[Source]:
        """Return the telemetry sources of drive and host during a measurement; none in simulated time."""
        return []

    def telling(self, recording: Path) -> AbstractContextManager[None]:
        """In simulated time, let the drive write its telemetry to the recording."""
        return nullcontext()


class LastUser:
    """The file that names the last recording that used a drive."""

    def __init__(self, path: Path, recording: str) -> None:
        self._path, self._recording = path, recording
        self.before = path.read_text(encoding="utf-8") if path.exists() else None

    def enter(self) -> None:
        """Enter this recording as the last user.

        Call it only after judging the previous user: if the process is killed in between, the next process would take
        itself for the previous user.
        """
        write_atomic(self._path, self._recording)


def reset_of_model(counters: Mapping[str, int]) -> dict[str, Any]:
    """Return the record of a virtual drive's purge by its model."""
    return {
        "method": "auto",
        "title": "reset of the flash model",
        "verified": f"the model reports {counters['mapped_pages']} mapped pages",
    }


@contextmanager
def open_device(plan: Plan) -> Iterator[Device]:
    """Open the device of a plan; raises UserError, before any write, if it may not be used."""
    refuse_elsewhere(plan)
    sheet = load_sheet(Path(plan.context["drives_sheet"]))
    row = sheet.get(plan.sheet_drive)
    if row is None:
        raise UserError(
            f"{plan.context['drives_sheet']}: has no drive '{plan.sheet_drive}'; add it, or remove it from the study"
        )
    if row.serial != plan.subject["drive"]["serial"]:
        raise UserError(
            f"{row.source}: serial is {row.serial}, but the plan is for {plan.subject['drive']['serial']}; run again"
        )
    planned = plan.subject["drive"]
    if (row.kind, list(row.members)) != (planned.get("kind", DRIVE.name), planned.get("members", [])):
        raise UserError(
            f"{row.source}: kind or members of '{row.drive}' have changed since the plan was made; run again"
        )
    if row.firmware != plan.subject["drive"].get("firmware"):
        raise UserError(
            f"{row.source}: firmware is {row.firmware or 'not pinned'}, but the plan is for "
            f"{plan.subject['drive'].get('firmware') or 'any'}; run again"
        )
    if plan.clock == "virtual":
        from drivelab.run.clock_device import ClockDevice  # imports numpy, which real drives do not need

        state = Path(plan.context["results"]) / KEPT_DRIVES / f"{row.serial}.state"
        state.parent.mkdir(parents=True, exist_ok=True)
        with exclusive(state.with_suffix(".lock"), plan.drive):
            yield ClockDevice(plan, state, LastUser(state.with_suffix(".user"), plan.recording))
    elif not KINDS[row.kind].destroyed:
        from drivelab.run.guest_device import GuestDevice

        refuse_kind(plan)
        with exclusive(Path(row.device), row.drive), guest.opened(row) as opened:
            yield GuestDevice(opened, plan)
    else:
        from drivelab.run.block_device import BlockDevice
        from drivelab.run.file_system_device import opened as opened_file_system

        refuse_foreign_commands(plan)
        refuse_kind(plan)
        _ready_to_mount(plan)
        with (
            _device_path(plan) as device,
            guard.held(row, device) as (held, hold),
            _agreed(plan, held),
            _in_wanted_state(plan, held.name),
            write_cache.as_wanted(held, plan.subject["write_cache"]),
        ):
            user = make_private(run_directory() / "users") / held.serial.replace("/", "_")
            last_user = LastUser(user, plan.recording)
            if plan.file_system is None:
                block_device = BlockDevice(held, plan, last_user, hold)
                try:
                    yield block_device
                finally:
                    block_device.close()
            else:
                with opened_file_system(held, plan, last_user, hold, plan.file_system) as device_of_file:
                    yield device_of_file


@contextmanager
def _agreed(plan: Plan, held: HeldDevice) -> Iterator[None]:
    """Raise UserError unless the user agreed to lose the data of exactly the drive that is held."""
    if held.virtual is None:
        consent.check(Path(plan.context["results"]), plan.drive, held.identity)
    yield


@contextmanager
def _in_wanted_state(plan: Plan, name: str) -> Iterator[None]:
    """Raise UserError if an array is not in the state that the measurement asks for."""
    wanted = plan.subject.get("array_state", CLEAN)
    state = array_state(name)
    actual = CLEAN if state is None else state.state
    if actual != wanted:
        words = "it has no array" if state is None else f"the array {state.name} is {state.words}"
        raise UserError(
            f"drive '{plan.drive}', {plan.measurement}: {words}, but the measurement is for the state '{wanted}'. "
            f"Nothing was written. {_REMEDY[wanted]} Then run the command again."
        )
    yield


_REMEDY = {
    CLEAN: "Wait until /proc/mdstat shows no operation, add the missing members, or set the key 'array_state'.",
    "degraded": "Mark a member as failed with mdadm --fail; it stays one of the members.",
    "rebuilding": "Remove the failed member with mdadm --remove, and add it again with mdadm --add.",
}
"""What brings an array into a state; drivelab never changes the state itself."""


def _ready_to_mount(plan: Plan) -> None:
    """Unmount file systems that a killed process left mounted.

    Raises UserError if the plan's file system or application cannot run here.
    """
    from drivelab.run.file_system_device import refuse_unready
    from drivelab.trace.capturing import applications, mounts

    mounts.recover_mounts()
    if plan.file_system is not None:
        refuse_unready(plan.file_system)
    if "application" in plan.subject:
        applications.refuse_unready(applications.of_plan(plan))


@contextmanager
def _device_path(plan: Plan) -> Iterator[str]:
    """Yield the path of a plan's device; start a virtual drive, which no other command then stops."""
    from drivelab.virtual import manage
    from drivelab.virtual.model import DriveModel

    model = plan.subject["drive"].get("virtual")
    if model is None:
        yield str(plan.context["device"])
        return
    name = str(plan.context["device"]).removeprefix("virtual:")
    kept = Path(plan.context["results"]) / KEPT_DRIVES
    with manage.using(name):
        yield manage.start(name, DriveModel.from_mapping(name, model), kept=kept).device
