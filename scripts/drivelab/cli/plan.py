"""`drivelab plan`: what a study would do, without touching anything."""

from __future__ import annotations

import argparse
from typing import Any

from drivelab.cli.run import in_project
from drivelab.config.study import DEFAULT_STUDY


def add_parser(commands: Any) -> None:
    """Register `plan`."""
    one = commands.add_parser("plan", help="show what a study would measure; touches nothing")
    one.add_argument("study", nargs="?", default=DEFAULT_STUDY)
    one.set_defaults(handler=_plan)


def _plan(options: argparse.Namespace) -> int:
    from drivelab.stages.estimate import ASSUMED_MIB_S, estimate
    from drivelab.stages.layout import Layout
    from drivelab.stages.planning import Campaign
    from drivelab.units import format_duration

    campaign = Campaign.load(in_project(options.study))
    Layout(campaign).check_owner()
    campaign.approve_drives()
    print(campaign.headline())
    for one in campaign.plans:
        done = (one.plan.recording_path / "recording.json").exists()
        span = estimate(one.plan, campaign.capacity_bytes(one.plan), ASSUMED_MIB_S, trace_s=10.0)
        time = f"{format_duration(span.least_s)} to {format_duration(span.most_s)} at {ASSUMED_MIB_S:.0f} MiB/s"
        print(f"{one.plan.recording}  {'recorded' if done else time}")
        for difference in one.altered:
            print(f"    reduced: {difference}")
    return 0
