"""`drivelab publish`: make a static site of many archived studies."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any


def add_parser(commands: Any) -> None:
    """Register `publish`."""
    parser = commands.add_parser(
        "publish",
        help="make a static site of many archives",
        description="Makes a folder of static pages from archives: every drive model with its results, conditions, "
        "history and evidence, a page that compares any two results, a search, and index.json for other tools. It "
        "needs no server. Every archive is verified first. Run the command again with more or fewer archives: only "
        "new ones are read, and studies that are no longer named are removed.",
    )
    parser.add_argument("archives", nargs="+", type=Path, metavar="ARCHIVE", help="file from 'archive create'")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="SITE",
        help="a new folder, or that of an earlier site",
    )
    parser.add_argument("--title", help="title of the site (default: Drive measurements)")
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")
    parser.set_defaults(handler=_publish)


def _publish(options: argparse.Namespace) -> int:
    from drivelab.core.terminal import progress_line
    from drivelab.publish.site import TITLE, publish, summary_line

    done = 0

    def watch(path: Path) -> None:
        nonlocal done
        done += 1
        show(f"{done} of {len(options.archives)}: {path.name}")

    with progress_line() as show:
        outcome = publish(options.archives, options.output, options.title or TITLE, watch)
    if options.json:
        print(json.dumps({"site": str(options.output / "index.html"), **asdict(outcome)}, indent=1))
    else:
        print(summary_line(options.output, outcome))
    return 0
