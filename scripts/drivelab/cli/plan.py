"""`drivelab plan`: show what a study would do, without touching anything."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from drivelab.cli.run import in_project
from drivelab.core.units import counted, format_amount, format_duration, format_percentage
from drivelab.plan.study import ANY_HOST, DEFAULT_STUDY

if TYPE_CHECKING:
    from drivelab.campaign.outlook import Outlook
    from drivelab.campaign.planning import Campaign, Planned

_LARGE = 300
"""Above this number of recordings, commands are shown only with --commands."""


def add_parser(commands: Any) -> None:
    """Register `plan`."""
    parser = commands.add_parser("plan", help="show what a study would erase, write and measure; touches nothing")
    parser.add_argument("study", nargs="?", default=DEFAULT_STUDY, help=f"study file (default {DEFAULT_STUDY})")
    parser.add_argument(
        "--commands", action="store_true", help="list every measurement with its commands, also for large studies"
    )
    parser.add_argument(
        "--everywhere", action="store_true", help="include measurements of other hosts, as on a cluster"
    )
    parser.set_defaults(handler=_plan)


def _plan(options: argparse.Namespace) -> int:
    from drivelab.campaign.budget import exceeded, refusal
    from drivelab.campaign.introduction import headline
    from drivelab.campaign.outlook import outlook
    from drivelab.campaign.planning import Campaign
    from drivelab.campaign.verdict_outlook import verdict_outlook
    from drivelab.workflow.layout import Layout

    campaign = Campaign.load(in_project(options.study), everywhere=options.everywhere)
    Layout(campaign).check_owner()
    campaign.approve_drives(attached_only=True)
    print(headline(campaign))
    rows = outlook(campaign)
    for row in rows:
        print("\n".join(row.lines()))
    print("\n".join(_totals(campaign, rows)))
    for line in growth_lines(campaign):
        print(line)
    if (verdicts := verdict_outlook(campaign)) is not None:
        print(verdicts)
    beyond = exceeded(campaign, rows)
    for excess in beyond:
        print(f"Over budget: {excess}")
    if len(campaign.plans) > _LARGE and not options.commands:
        print("--commands lists every measurement with its commands.")
    else:
        by_drive = {row.drive: row for row in rows}
        for planned in sorted(campaign.plans, key=lambda planned: campaign.order(planned.plan)):
            _show(campaign, planned, by_drive)
    if beyond:  # same exit status as `drivelab run`, for scripts
        raise refusal(campaign, beyond)
    return 0


def growth_lines(campaign: Campaign) -> list[str]:
    """Return what a growing study may still take and write; no lines for other studies."""
    from drivelab.campaign.outlook import outlook
    from drivelab.campaign.planning import Campaign

    study = campaign.study
    if study.growth is None:
        return []
    runs = {choice.name: study.growth.most for choice in study.measurements}
    most = Campaign.load(study.path, everywhere=campaign.everywhere, growth=study.growth.grown(runs, ()))
    return [
        "Grows: one run at a time, until every headline comparison is decided at the margin of "
        f"{format_percentage(study.margin_pct)} %. With all {study.growth.most} runs:",
        *(f"    {line}" for line in _totals(most, outlook(most)) or ["nothing is left to measure"]),
    ]


def _totals(campaign: Campaign, rows: Sequence[Outlook]) -> list[str]:
    """Return a line for each host with measurements to do: its drives, time and bytes in total."""
    from drivelab.campaign.budget import together_s

    lines = []
    for host in dict.fromkeys(host for row in rows for host in row.by_host):
        spans = [row.by_host[host] for row in rows if host in row.by_host]
        concurrency = campaign.study.concurrency_of(host)
        least_s, most_s = (
            together_s([getattr(span, key) for span in spans], concurrency) for key in ("least_s", "most_s")
        )
        where = "Total" if host == ANY_HOST else f"Total on host {host}"
        lines.append(
            f"{where}: {counted(len(spans), 'drive')}, {format_duration(least_s)} to {format_duration(most_s)}"
            f"{f', {concurrency} at a time' if concurrency > 1 else ''}, at most "
            f"{format_amount(sum(span.most_bytes for span in spans))} written"
        )
    return lines


def _show(campaign: Campaign, planned: Planned, rows: Mapping[str, Outlook]) -> None:
    """Print a measurement, with its commands if this host makes it."""
    from drivelab.campaign.commands import fio_commands
    from drivelab.drives import sysfs
    from drivelab.plan.file_system import BLOCK_BYTES
    from drivelab.plan.hosts import host_of
    from drivelab.plan.subject_kinds import FILE
    from drivelab.recording.folders import is_recorded
    from drivelab.virtual.model import DriveModel

    place = ""
    if campaign.study.order is not None:
        host = host_of(planned.plan)
        place = f", number {campaign.order(planned.plan) + 1}{'' if host == ANY_HOST else f' on host {host}'}"
    print(f"\n{planned.plan.recording}{place}{', already recorded' if is_recorded(planned.plan) else ''}")
    for difference in planned.altered:
        print(f"    reduced: {difference}")
    if "simultaneous" in planned.plan.subject:
        print(f"    measured at the same time: {', '.join(planned.plan.subject['simultaneous'])}")
    print(f"    purge: {planned.plan.subject['condition']['purge']}")
    row = rows.get(planned.plan.sheet_drive)
    if row is None or not campaign.is_here(planned.plan) or not row.attached:
        return
    if row.virtual:
        block = DriveModel.from_mapping(row.drive, planned.plan.subject["drive"]["virtual"]).logical_block_bytes
    elif planned.plan.kind == FILE.name:
        block = BLOCK_BYTES
    else:
        block = sysfs.logical_block_bytes(row.device.removeprefix("/dev/"))
    for purpose, command in fio_commands(planned.plan, row.device, row.capacity_bytes, block):
        print(f"    {purpose}" + (" (simulated)" if planned.plan.clock == "virtual" else f":\n        {command}"))
