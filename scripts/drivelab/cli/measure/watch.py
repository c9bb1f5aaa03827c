"""`drivelab watch`: show the drives of studies live."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from drivelab.cli.measure.study import all_in_project, refuse_same_name


def add_parser(commands: Any) -> None:
    """Register `watch`."""
    parser = commands.add_parser(
        "watch",
        help="show running studies live, on the terminal or as a page",
        description="Shows the drives of one or more studies: what each does, its rates of the last minutes, and what "
        "was done. In a pipe, it prints a line for each change and ends with the studies. It only reads files of the "
        "results folder, so you can start and stop it at any time, even if no study runs.",
    )
    parser.studies()
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="also write the view as a page that reloads itself in a browser"
    )
    parser.set_defaults(handler=_watch)


def _watch(options: argparse.Namespace) -> int:
    from drivelab.watch.study_view import StudyFacts, StudyWatch
    from drivelab.watch.text import show

    studies = [StudyWatch(StudyFacts.load(path)) for path in all_in_project(options.studies)]
    refuse_same_name([study.facts.name for study in studies])
    os.nice(19)  # measurements on this host go first
    try:
        show(studies, options.html)
    except KeyboardInterrupt:
        return 0
    return 0
