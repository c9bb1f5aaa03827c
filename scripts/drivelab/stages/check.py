"""A study checked whole, and several against each other, without touching anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

from drivelab.config.study import ANY_HOST
from drivelab.errors import UserError
from drivelab.recording.places import OWNER
from drivelab.stages.budget import require_within
from drivelab.stages.engines import check_engines
from drivelab.stages.layout import Layout
from drivelab.stages.outlook import outlook
from drivelab.stages.planning import Campaign
from drivelab.stages.platforms import host_of, is_here, still_elsewhere, this_host
from drivelab.words import some

_NAMED = 5
"""Things that a remark names."""


def check(path: str | Path) -> tuple[Campaign, list[str]]:
    """The campaign of all hosts, and what is worth a remark though it is no fault.

    Raises UserError for the first fault: of the study, what it refers to, drives that are attached here, its budget,
    its results folder, or a trace that cannot be read.
    """
    campaign = Campaign.load(path, everywhere=True)
    layout = Layout(campaign)
    layout.check_owner()
    here = [plan for plan in campaign.here if is_here(plan)]
    if here:
        Campaign(campaign.study).approve_drives(attached_only=True)
    check_engines(here)
    for plan in campaign.here:
        campaign.traces_of(plan)
    rows = outlook(campaign)
    require_within(campaign, rows)
    remarks = list(_unowned(layout))
    remarks += _hosts_of_none(campaign)
    if missing := [row.drive for row in rows if not row.attached]:
        remarks.append(f"not attached here, so the guard has not seen them: {some(missing, _NAMED)}")
    if words := still_elsewhere(plan for plan in campaign.here if not is_here(plan)):
        remarks.append(words)
    return campaign, remarks


def _unowned(layout: Layout) -> Iterator[str]:
    if names := layout.unowned():
        yield (
            f"{layout.results} holds {some(names, _NAMED)}, but no {OWNER}, which names the study that a folder is of: "
            "what has a name that the study uses will count as its own, all else stays as it is"
        )


def _hosts_of_none(campaign: Campaign) -> Iterator[str]:
    """Hosts of `concurrency` that are none of the sheet's, the platforms' or this one; drives without any are apart."""
    limits = campaign.study.concurrency
    if isinstance(limits, int):
        return
    used = {host_of(plan) for plan in campaign.here}
    known = {*used, *(row.host for row in campaign.sheet.values()), this_host(), ANY_HOST}
    if unknown := [host for host in limits if host not in known]:
        there = ", ".join(sorted(used - {ANY_HOST}))
        yield (
            f"key 'concurrency' names {some(unknown, _NAMED)}, which no drive is attached to"
            + (f"; the study's hosts are: {there}" if there else "")
        )
    if ANY_HOST in used and ANY_HOST not in limits:
        yield (
            f"key 'concurrency' is 1 for drives that {campaign.study.drives_sheet} names no host of, wherever they are "
            f"measured; '{ANY_HOST}' in it is for them"
        )


def clashes(campaigns: Sequence[Campaign]) -> None:
    """Raise UserError if studies cannot stand side by side: one results folder, or one drive, in two of them.

    A results folder may lie below another study's: never at a place that a study has of its own (`results_of`). On the
    virtual clock each study has drives of its own.
    """
    for left, right in combinations(campaigns, 2):
        one, other = left.study, right.study
        if one.path == other.path:
            raise UserError(f"{one.path}: is named twice; name each study once")
        if one.results == other.results:
            raise UserError(
                f"{other.path}: key 'results' is {other.results}, as of {one.path}; give each study a folder of its "
                "own, as results/NAME is"
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
