"""`drivelab report`: rebuild the report of a finished study, and show it in a browser."""

from __future__ import annotations

import argparse
import os
from typing import Any

from drivelab.cli.completion import completed_by, studies
from drivelab.core.errors import UserError
from drivelab.core.units import counted
from drivelab.plan.places import COMMAND
from drivelab.plan.study import DEFAULT_STUDY


def add_parser(commands: Any) -> None:
    """Register `report`."""
    parser = commands.add_parser(
        "report",
        help="rebuild the report of a finished study, and open it",
        description="Makes what changed since: analysis, figures, report. It measures nothing, and writes to no drive.",
    )
    study = parser.add_argument("study", nargs="?", default=DEFAULT_STUDY, help=f"study file (default {DEFAULT_STUDY})")
    completed_by(study, studies)
    parser.add_argument("--open", action="store_true", help="open the report in the default browser")
    parser.set_defaults(handler=_report)


def _report(options: argparse.Namespace) -> int:
    from drivelab.campaign.planning import Campaign
    from drivelab.cli.measure.run import in_project
    from drivelab.cli.measure.runner import run_study

    path = in_project(options.study)
    campaign = Campaign.load(path)
    if campaign.to_do:
        missing = counted(len(campaign.to_do), "measurement")
        raise UserError(
            f"{path}: {missing} of {len(campaign.plans)} have no recording yet, and this command measures nothing; "
            f"make them with: {COMMAND} run {path}"
        )
    status = run_study(path, os.cpu_count() or 1, yes=False)
    page = (campaign.study.results / "report/index.html").resolve()
    if status == 0 and options.open:
        import webbrowser

        if not webbrowser.open(page.as_uri()):
            raise UserError(f"no browser could be started here; open {page} yourself")
    return status
