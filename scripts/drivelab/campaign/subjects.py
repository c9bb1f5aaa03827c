"""The drive's part of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.campaign.traces import refuse_on_drive
from drivelab.core.errors import UserError
from drivelab.drives import guard, sysfs
from drivelab.drives.approved import ApprovedDevice
from drivelab.plan.cell import needs_over_provisioning
from drivelab.plan.drive_sheet import OVER_PROVISIONING, SheetRow
from drivelab.plan.file_system import BLOCK_BYTES
from drivelab.plan.fitting import refuse_unfit
from drivelab.plan.hosts import host_of, this_host
from drivelab.plan.plan import Plan
from drivelab.plan.study import ANY_HOST, MeasurementChoice, Study
from drivelab.plan.subject_kinds import DRIVE, KINDS
from drivelab.recording.folders import is_recorded
from drivelab.run import guest
from drivelab.run.write_cache import refuse_unknown
from drivelab.virtual.model import DriveModel

if TYPE_CHECKING:
    from drivelab.campaign.planning import Campaign


def drive_subject(row: SheetRow, model: DriveModel | None, steps: Mapping[str, Any]) -> dict[str, Any]:
    """Return the serial, and where they apply: kind with its members or size, pinned firmware, virtual drive's model,
    over-provisioning (a fraction).

    Raises UserError when the sheet and the model disagree, or when the plan's fill needs the over-provisioning and it
    is unknown.
    """
    subject: dict[str, Any] = {"serial": row.serial}
    if row.kind != DRIVE.name:
        subject["kind"] = row.kind
    if row.members:
        subject["members"] = list(row.members)
    if row.size_bytes is not None:
        subject["size_bytes"] = row.size_bytes
    if model is not None:
        if model.serial != row.serial:
            raise UserError(
                f"{row.source}: drive '{row.drive}' has serial {row.serial}, "
                f"virtual drive '{row.virtual}' says {model.serial}; make them agree"
            )
        if row.firmware not in (None, model.firmware):
            raise UserError(
                f"{row.source}: drive '{row.drive}' is pinned to firmware {row.firmware}, "
                f"virtual drive '{row.virtual}' has {model.firmware}; make them agree"
            )
        subject["virtual"] = model.to_mapping()
    if row.firmware is not None:
        subject["firmware"] = row.firmware
    if needs_over_provisioning(steps):
        known = row.over_provisioning if model is None else model.over_provisioning
        if known is None:
            raise UserError(
                f"{row.source}: the plan fills drive '{row.drive}' in multiples of its raw capacity, which only the "
                f"vendor knows; enter it in the column {OVER_PROVISIONING}"
            )
        subject["over_provisioning"] = known
    return subject


def capacity_bytes_of(plan: Plan) -> int:
    """Return the capacity of a plan's drive or file; raises UserError if a real drive is not attached."""
    if "size_bytes" in plan.subject["drive"]:
        return int(plan.subject["drive"]["size_bytes"])
    model = plan.subject["drive"].get("virtual")
    if model is not None:
        return DriveModel.from_mapping(plan.drive, model).capacity_bytes
    try:
        return sysfs.capacity_bytes(sysfs.kernel_name(plan.context["device"]))
    except OSError:
        raise UserError(
            f"drive '{plan.drive}' is not attached: there is no {plan.context['device']}; attach it"
        ) from None


def logical_block_bytes_of(plan: Plan) -> int:
    """Return the logical block of a plan's attached drive, or the block of its file."""
    if "size_bytes" in plan.subject["drive"]:
        return BLOCK_BYTES
    model = plan.subject["drive"].get("virtual")
    if model is not None:
        return DriveModel.from_mapping(plan.drive, model).logical_block_bytes
    return sysfs.logical_block_bytes(sysfs.kernel_name(plan.context["device"]))


def refuse_kept(sheet: Mapping[str, SheetRow], plans: Iterable[Plan]) -> None:
    """Raise UserError if an unfinished plan needs a drive that may not be written to."""
    for plan in plans:
        row = sheet[plan.sheet_drive]
        if not row.destructive and KINDS[plan.kind].destroyed and not is_recorded(plan):
            raise UserError(
                f"{row.source}: drive '{row.drive}' has destructive: no, but the study measures it; "
                "enter yes or remove the drive from the study"
            )


def refuse_nested(study: Study, sheet: Mapping[str, SheetRow]) -> None:
    """Raise UserError if a study measures a drive and a part of it: erasing the drive removes the part."""
    for part in map(sheet.__getitem__, study.drives):
        for whole in map(sheet.__getitem__, study.drives):
            if whole.serial in part.members:
                raise UserError(
                    f"{study.path}: key 'drives' names '{whole.drive}' and its {part.kind} '{part.drive}', which "
                    "erasing the drive would remove; measure them in two studies"
                )


def simultaneous(
    drives: Sequence[str], sheet: Mapping[str, SheetRow], choice: MeasurementChoice, clock: tuple[str, str | None]
) -> dict[str, Any]:
    """Return the part of a plan that names the drives measured at the same time: `simultaneous`, their sorted serials.

    Empty for one drive. `clock` is the clock of the virtual drives, as in `Campaign`. Raises UserError when only some
    drives are simulated, because simulated time and real time do not coincide, or when two subjects share a disk or
    file system.
    """
    if len(drives) < 2:
        return {}
    rows = [sheet[drive] for drive in drives]
    users: dict[str, str] = {}
    place = f"{choice.source}: protocol '{choice.protocol}' measures all drives at the same time, but"
    for row in rows:
        for carrier in row.members or (row.serial,):
            if (other := users.setdefault(carrier, row.drive)) != row.drive:
                raise UserError(
                    f"{place} '{other}' and '{row.drive}' are both on {carrier} and would slow each other down; leave "
                    "out one of them"
                )
    simulated = [row.drive for row in rows if row.virtual is not None]
    if clock[0] == "virtual" and 0 < len(simulated) < len(rows):
        raise UserError(
            f"{place} {', '.join(simulated)} would run in simulated time ({clock[1]}); remove the virtual or the real "
            "drives"
        )
    return {"simultaneous": sorted(row.serial for row in rows)}


def approve(campaign: Campaign, *, attached_only: bool = False) -> dict[str, ApprovedDevice]:
    """Let the guard check every real drive that still has a measurement to do here, and open what it does not guard.

    Return the approved devices by drive. Writes to no drive. With `attached_only` drives that are not attached are
    skipped. Raises UserError when the guard refuses a drive, when a cell is smaller than the drive's logical block, or
    when a drive does not report its write cache.
    """
    refuse_kept(campaign.sheet, campaign.to_do)
    hosts = {this_host()} if campaign.everywhere else {this_host(), ANY_HOST}
    approved = {
        drive: guard.approve(campaign.sheet[drive], campaign.sheet[drive].device)
        for drive in dict.fromkeys(plan.sheet_drive for plan in campaign.to_do if host_of(plan) in hosts)
        if campaign.sheet[drive].virtual is None
        and KINDS[campaign.sheet[drive].kind].destroyed
        and not (attached_only and not Path(campaign.sheet[drive].device).exists())
    }
    for plan in campaign.to_do:
        row = campaign.sheet[plan.sheet_drive]
        if not KINDS[row.kind].destroyed and host_of(plan) in hosts:
            with guest.opened(row) as opened:
                refuse_unfit(plan, opened.capacity_bytes, opened.logical_block_bytes)
    for drive, wanted in dict.fromkeys((plan.sheet_drive, plan.subject["write_cache"]) for plan in campaign.to_do):
        if drive in approved and wanted is not None:
            refuse_unknown(approved[drive], wanted)
    for plan in campaign.to_do:
        if (device := approved.get(plan.sheet_drive)) is not None:
            refuse_on_drive(plan, sysfs.capacity_bytes(device.name))
            refuse_unfit(plan, sysfs.capacity_bytes(device.name), sysfs.logical_block_bytes(device.name))
    return approved
