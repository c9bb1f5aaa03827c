"""`drivelab plan`: what a study would do, without touching anything."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from drivelab.cli.run import in_project
from drivelab.config.study import ANY_HOST, DEFAULT_STUDY
from drivelab.units import format_amount, format_duration
from drivelab.words import counted

if TYPE_CHECKING:
    from drivelab.stages.outlook import Outlook
    from drivelab.stages.planning import Campaign, Planned

_LARGE = 300
"""Recordings above which nobody would read through all of their commands."""


def add_parser(commands: Any) -> None:
    """Register `plan`."""
    one = commands.add_parser("plan", help="show what a study would erase, write and measure; touches nothing")
    one.add_argument("study", nargs="?", default=DEFAULT_STUDY, help=f"study file (default {DEFAULT_STUDY})")
    one.add_argument(
        "--commands", action="store_true", help="every measurement with its commands, of large studies too"
    )
    one.add_argument("--everywhere", action="store_true", help="what is for other hosts, too, as if run on a cluster")
    one.set_defaults(handler=_plan)


def _plan(options: argparse.Namespace) -> int:
    from drivelab.stages.budget import exceeded, refusal
    from drivelab.stages.headline import headline
    from drivelab.stages.layout import Layout
    from drivelab.stages.outlook import outlook
    from drivelab.stages.planning import Campaign

    campaign = Campaign.load(in_project(options.study), everywhere=options.everywhere)
    Layout(campaign).check_owner()
    campaign.approve_drives(attached_only=True)
    print(headline(campaign))
    rows = outlook(campaign)
    for row in rows:
        print("\n".join(row.lines()))
    print("\n".join(_totals(campaign, rows)))
    beyond = exceeded(campaign, rows)
    for words in beyond:
        print(f"Beyond the budget: {words}")
    if len(campaign.plans) > _LARGE and not options.commands:
        print("Measurements and commands one by one: --commands")
    else:
        of_drive = {row.drive: row for row in rows}
        for one in sorted(campaign.plans, key=lambda one: campaign.order(one.plan)):
            _show(campaign, one, of_drive)
    if beyond:  # as `drivelab run` ends; a script must see it, too
        raise refusal(campaign, beyond)
    return 0


def _totals(campaign: Campaign, rows: Sequence[Outlook]) -> list[str]:
    """For each host that has something to do, all of it together."""
    from drivelab.stages.budget import together_s

    found = []
    for host in dict.fromkeys(host for row in rows for host in row.by_host):
        spans = [row.by_host[host] for row in rows if host in row.by_host]
        places = campaign.study.concurrency_of(host)
        least_s, most_s = (together_s([getattr(span, key) for span in spans], places) for key in ("least_s", "most_s"))
        where = "Together" if host == ANY_HOST else f"On host {host} together"
        found.append(
            f"{where}: {counted(len(spans), 'drive')}, {format_duration(least_s)} to {format_duration(most_s)}"
            f"{f', {places} at a time' if places > 1 else ''}, at most "
            f"{format_amount(sum(span.most_bytes for span in spans))} written"
        )
    return found


def _show(campaign: Campaign, one: Planned, rows: Mapping[str, Outlook]) -> None:
    """A measurement, and the commands of those that this host makes."""
    from drivelab.drives import sysfs
    from drivelab.stages.commands import fio_commands
    from drivelab.stages.platforms import host_of, is_recorded
    from drivelab.virtual.model import DriveModel

    place = ""
    if campaign.study.order is not None:
        host = host_of(one.plan)
        place = f", number {campaign.order(one.plan) + 1}{'' if host == ANY_HOST else f' on host {host}'}"
    print(f"\n{one.plan.recording}{place}{', recorded already' if is_recorded(one.plan) else ''}")
    for difference in one.altered:
        print(f"    reduced: {difference}")
    if "simultaneous" in one.plan.subject:
        print(f"    measured at the same time: {', '.join(one.plan.subject['simultaneous'])}")
    print(f"    purge: {one.plan.subject['condition']['purge']}")
    row = rows.get(one.plan.sheet_drive)
    if row is None or not campaign.is_here(one.plan) or not row.attached:
        return
    if row.virtual:
        block = DriveModel.from_mapping(row.drive, one.plan.subject["drive"]["virtual"]).logical_block_bytes
    else:
        block = sysfs.logical_block_bytes(row.device.removeprefix("/dev/"))
    for purpose, command in fio_commands(one.plan, row.device, row.capacity_bytes, block):
        print(f"    {purpose}" + (" (simulated)" if one.plan.clock == "virtual" else f":\n        {command}"))
