"""The guard's look at all drives of a study, before any of them is touched."""

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
    """Let the guard look at every real drive that something is left to be measured on here; raises UserError.

    None is touched. Also when a cell is smaller than the logical block of its drive, or a drive tells nothing of its
    write cache. With `attached_only` a drive that is not attached is passed over.
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
