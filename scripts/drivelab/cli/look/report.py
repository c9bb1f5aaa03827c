"""`drivelab report`: rebuild the report of a finished study, and show it in a browser."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.units import counted
from drivelab.plan.places import COMMAND


def add_parser(commands: Any) -> None:
    """Register `report`."""
    parser = commands.add_parser(
        "report",
        help="rebuild the report of a finished study, and open it",
        description="Rebuilds what changed: analysis, figures, report. It measures nothing, and writes to no drive.",
    )
    parser.study()
    parser.flag("--open", "open the report in the default browser")
    parser.add_argument(
        "--figures",
        choices=("pdf", "svg", "png"),
        help="also write the figures for a paper: as wide as a column of the IEEE (3.5 or 7.16 inches), without titles",
    )
    parser.add_argument(
        "--tables", choices=("csv", "latex"), help="also write the values and comparisons as tables for a paper"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="write figures and tables there, with their captions (default: the folder of the report)",
    )
    parser.set_defaults(handler=_report)


def _report(options: argparse.Namespace) -> int:
    from drivelab.campaign.planning import Campaign
    from drivelab.cli.measure.run import in_project
    from drivelab.cli.measure.runner import run_study

    for_paper = options.figures or options.tables
    if options.output and not for_paper:
        raise UserError("--output needs --figures or --tables; it is the folder of their files")
    output = options.output and options.output.absolute()
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
    if status == 0 and for_paper:
        results = campaign.study.results
        _write_for_paper(results, output or results / "report", options.figures, options.tables)
    if status == 0 and options.open:
        import webbrowser

        if not webbrowser.open(page.as_uri()):
            raise UserError(f"no browser could be started here; open {page} yourself")
    return status


def _write_for_paper(results: Path, output: Path, figures: str | None, tables: str | None) -> None:
    from drivelab.core.terminal import progress_line
    from drivelab.explore.paper import CAPTIONS, write_for_paper

    with progress_line() as show:
        files = write_for_paper(
            results, output, figures, tables, lambda done, of: show(f"figure {done + 1} of {of} for a paper")
        )
    print(f"{output}: {counted(len(files) - 1, 'file')} for a paper; captions: {output / CAPTIONS}")
