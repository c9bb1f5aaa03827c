"""A study checked whole, and several against each other, without touching anything."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from drivelab.errors import UserError
from drivelab.stages.budget import require_within
from drivelab.stages.engines import check_engines
from drivelab.stages.layout import Layout
from drivelab.stages.outlook import outlook
from drivelab.stages.planning import Campaign
from drivelab.stages.platforms import is_here, still_elsewhere


def check(path: str | Path) -> tuple[Campaign, list[str]]:
    """The campaign of all hosts, and what is worth a remark though it is no fault.

    Raises UserError for the first fault: of the study, what it refers to, drives that are attached here, its budget,
    its results folder, or a trace that cannot be read.
    """
    campaign = Campaign.load(path, everywhere=True)
    Layout(campaign).check_owner()
    here = [plan for plan in campaign.here if is_here(plan)]
    if here:
        Campaign(campaign.study).approve_drives(attached_only=True)
    check_engines(here)
    for plan in campaign.here:
        campaign.traces_of(plan)
    rows = outlook(campaign)
    require_within(campaign, rows)
    remarks = []
    if missing := [row.drive for row in rows if not row.attached]:
        named = f"{', '.join(missing[:5])}{f' and {len(missing) - 5} more' if len(missing) > 5 else ''}"
        remarks.append(f"not attached here, so the guard has not seen them: {named}")
    if words := still_elsewhere(plan for plan in campaign.here if not is_here(plan)):
        remarks.append(words)
    return campaign, remarks


def clashes(campaigns: Sequence[Campaign]) -> None:
    """Raise UserError if studies cannot stand side by side: nested results folders, or one drive in two of them.

    On the virtual clock each study has drives of its own.
    """
    for left, right in combinations(campaigns, 2):
        one, other = left.study, right.study
        if one.path == other.path:
            raise UserError(f"{one.path}: is named twice; name each study once")
        if one.results.is_relative_to(other.results) or other.results.is_relative_to(one.results):
            raise UserError(
                f"{other.path}: key 'results' is {other.results}, of {one.path} {one.results}; give each study a "
                "folder of its own, as results/NAME is"
            )
        ours, theirs = _serials(left), _serials(right)
        if both := ours.keys() & theirs.keys():
            serial = min(both)
            raise UserError(
                f"{other.path}: drive '{theirs[serial]}' ({serial}) is measured by {one.path}, too; run one after the "
                "other, as each would undo the other's preconditioning"
            )


def _serials(campaign: Campaign) -> dict[str, str]:
    return {campaign.sheet[drive].serial: drive
            for drive in dict.fromkeys(plan.sheet_drive for plan in campaign.here if plan.clock == "wall")}  # fmt: skip
