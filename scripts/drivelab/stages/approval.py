"""The guard checks all drives of a study before drivelab writes to any."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from drivelab.config.study import ANY_HOST
from drivelab.drives import guard, sysfs
from drivelab.stages.drive_subject import refuse_kept
from drivelab.stages.fitting import refuse_unfit
from drivelab.stages.planned_application import refuse_on_drive
from drivelab.stages.platforms import host_of, this_host
from drivelab.stages.write_cache import known_state

if TYPE_CHECKING:
    from drivelab.stages.planning import Campaign


def approve(campaign: Campaign, *, attached_only: bool = False) -> None:
    """Let the guard check every real drive that still has a measurement to do here.

    Writes to no drive. With `attached_only` drives that are not attached are skipped. Raises UserError when the guard
    refuses a drive, when a cell is smaller than the drive's logical block, or when a drive does not report its write
    cache.
    """
    for plan in campaign.to_do:
        refuse_kept(campaign.sheet[plan.sheet_drive], plan)
    hosts = {this_host()} if campaign.everywhere else {this_host(), ANY_HOST}
    approved = {
        drive: guard.approve(campaign.sheet[drive], campaign.sheet[drive].device)
        for drive in dict.fromkeys(plan.sheet_drive for plan in campaign.to_do if host_of(plan) in hosts)
        if campaign.sheet[drive].virtual is None
        and not (attached_only and not Path(campaign.sheet[drive].device).exists())
    }
    for drive, wanted in dict.fromkeys((plan.sheet_drive, plan.subject["write_cache"]) for plan in campaign.to_do):
        if drive in approved and wanted is not None:
            known_state(approved[drive], wanted)
    for plan in campaign.to_do:
        if (device := approved.get(plan.sheet_drive)) is not None:
            refuse_on_drive(plan, sysfs.capacity_bytes(device.name))
            refuse_unfit(plan, sysfs.capacity_bytes(device.name), sysfs.logical_block_bytes(device.name))
