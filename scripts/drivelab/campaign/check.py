"""Check a whole study, and several studies against each other, without writing to a drive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path

from drivelab.campaign.budget import require_within
from drivelab.campaign.outlook import outlook
from drivelab.campaign.planning import Campaign
from drivelab.campaign.results_folder import refuse_foreign
from drivelab.core.errors import UserError
from drivelab.core.units import some
from drivelab.fio.job_run import fio_version
from drivelab.plan.hosts import host_of, is_here, still_elsewhere, this_host
from drivelab.plan.plan import Plan
from drivelab.plan.study import ANY_HOST
from drivelab.plan.study_parts import IN_RESULTS
from drivelab.recording.folders import OWNER, owner
from drivelab.run.file_system_device import refuse_unready
from drivelab.trace.capturing import applications


def check_engines(plans: Iterable[Plan]) -> None:
    """Raise UserError when a plan in real time needs an engine that is missing, too old or forbidden."""
    in_real_time = [plan for plan in plans if plan.clock == "wall"]
    if in_real_time:
        fio_version()
    for plan in in_real_time:
        if "application" in plan.subject:
            applications.refuse_unready(applications.of_plan(plan))
    for file_system in dict.fromkeys(plan.file_system for plan in in_real_time):
        if file_system is not None:
            refuse_unready(file_system)
    needy = next((plan for plan in in_real_time if any("replay" in step for step in plan.subject["measure"])), None)
    if needy is not None:
        from drivelab.replay import native  # imports pyarrow, which is slow; only replays need it

        if (reason := native.possible()) is not None:
            raise UserError(f"{needy.measurement} needs drivelab's native replay engine, but {reason}")


_NAMED = 5
"""Names listed in a remark."""


def check(path: str | Path) -> tuple[Campaign, list[str]]:
    """Return the campaign of all hosts, and remarks on what is not an error.

    Raises UserError for the first error: in the study, in what it refers to, in drives that are attached here, in the
    budget, in the results folder, or in a trace.
    """
    campaign = Campaign.load(path, everywhere=True)
    refuse_foreign(campaign.study)
    here = [plan for plan in campaign.here if is_here(plan)]
    if here:
        Campaign(campaign.study).approve_drives(attached_only=True)
    check_engines(here)
    for plan in campaign.here:
        campaign.traces.of(plan)
    rows = outlook(campaign)
    require_within(campaign, rows)
    remarks = [*_unowned(campaign.study.results), *_unused_hosts(campaign)]
    if missing := [row.drive for row in rows if not row.attached]:
        remarks.append(f"not attached here, so not checked by the guard: {some(missing, _NAMED)}")
    if remark := still_elsewhere((plan for plan in campaign.here if not is_here(plan)), campaign.study.path):
        remarks.append(remark)
    return campaign, remarks


def _unowned(results: Path) -> Iterator[str]:
    """Yield a remark on a results folder without an owner, except on folders that may belong to other studies."""
    if not results.is_dir() or owner(results) is not None:
        return
    names = [path.name for path in results.iterdir() if path.name in IN_RESULTS or not path.is_dir()]
    if visible := sorted(name for name in names if not name.startswith(".")):
        yield (
            f"{results} holds {some(visible, _NAMED)}, but no {OWNER}, which names the study that owns the "
            "folder: drivelab treats files with names that this study uses as its own, and leaves all others unchanged"
        )


def _unused_hosts(campaign: Campaign) -> Iterator[str]:
    """Yield remarks on hosts of `concurrency` that have no drives, and on drives without a host."""
    limits = campaign.study.concurrency
    if isinstance(limits, int):
        return
    used = {host_of(plan) for plan in campaign.here}
    known = {*used, *(row.host for row in campaign.sheet.values()), this_host(), ANY_HOST}
    if unknown := [host for host in limits if host not in known]:
        there = ", ".join(sorted(used - {ANY_HOST}))
        yield (
            f"key 'concurrency' names {some(unknown, _NAMED)}, but no drive is attached there"
            + (f"; the study's hosts are: {there}" if there else "")
        )
    if ANY_HOST in used and ANY_HOST not in limits:
        yield (
            f"key 'concurrency' is 1 for drives without a host in {campaign.study.drives_sheet}, wherever they are "
            f"measured; set '{ANY_HOST}' in it to change that"
        )


def clashes(campaigns: Sequence[Campaign]) -> None:
    """Raise UserError if two studies share a results folder or a drive.

    A results folder may lie below another study's folder, but never at a path that a study uses itself (`results_of`).
    On the virtual clock each study has separate drives.
    """
    for left, right in combinations(campaigns, 2):
        first, second = left.study, right.study
        if first.path == second.path:
            raise UserError(f"{first.path}: is named twice; name each study once")
        if first.results == second.results:
            raise UserError(
                f"{second.path}: key 'results' is {second.results}, as in {first.path}; give each study a separate "
                "folder, such as results/NAME"
            )
        ours, theirs = _serials(left), _serials(right)
        if both := ours.keys() & theirs.keys():
            serial = min(both)
            raise UserError(
                f"{second.path}: drive '{theirs[serial]}' ({serial}) is also measured by {first.path}; run the studies "
                "one after the other, because each undoes the other's preconditioning"
            )


def _serials(campaign: Campaign) -> dict[str, str]:
    return {campaign.sheet[drive].serial: drive
            for drive in dict.fromkeys(plan.sheet_drive for plan in campaign.here if plan.clock == "wall")}  # fmt: skip
