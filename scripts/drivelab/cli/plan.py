"""`drivelab plan`: what a study would do, without touching anything."""

from __future__ import annotations

import argparse
from typing import Any

from drivelab.cli.run import in_project
from drivelab.config.study import DEFAULT_STUDY


def add_parser(commands: Any) -> None:
    """Register `plan`."""
    one = commands.add_parser("plan", help="show what a study would erase, write and measure; touches nothing")
    one.add_argument("study", nargs="?", default=DEFAULT_STUDY)
    one.set_defaults(handler=_plan)


def _plan(options: argparse.Namespace) -> int:
    from drivelab.drives import sysfs
    from drivelab.stages.commands import fio_commands
    from drivelab.stages.headline import headline
    from drivelab.stages.layout import Layout
    from drivelab.stages.outlook import outlook
    from drivelab.stages.planning import Campaign
    from drivelab.stages.platforms import is_here
    from drivelab.virtual.model import DriveModel

    campaign = Campaign.load(in_project(options.study))
    Layout(campaign).check_owner()
    campaign.approve_drives()
    print(headline(campaign))
    rows = {row.drive: row for row in outlook(campaign)}
    for row in rows.values():
        print("\n".join(row.lines()))
    for one in campaign.plans:
        done = (one.plan.recording_path / "recording.json").exists()
        print(f"\n{one.plan.recording}{', recorded already' if done else ''}")
        for difference in one.altered:
            print(f"    reduced: {difference}")
        if "simultaneous" in one.plan.subject:
            print(f"    measured at the same time: {', '.join(one.plan.subject['simultaneous'])}")
        print(f"    purge: {one.plan.subject['condition']['purge']}")
        if not is_here(one.plan):
            continue
        row = rows[one.plan.sheet_drive]
        if row.virtual:
            block = DriveModel.from_mapping(row.drive, one.plan.subject["drive"]["virtual"]).logical_block_bytes
        else:
            block = sysfs.logical_block_bytes(row.device.removeprefix("/dev/"))
        for purpose, command in fio_commands(one.plan, row.device, row.capacity_bytes, block):
            print(f"    {purpose}" + (" (simulated)" if one.plan.clock == "virtual" else f":\n        {command}"))
    return 0
