"""`drivelab trend`: values of a drive model over dates, firmwares or hosts."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from drivelab.cli.look.compare import FAILED, margin_pct, outcomes
from drivelab.core.units import counted

_ORDERS = ("date", "firmware", "host")


def add_parser(commands: Any) -> None:
    """Register `trend`."""
    parser = commands.add_parser(
        "trend",
        help="follow a drive model over dates, firmwares or hosts",
        description="Takes all comparable recordings of one drive model from results folders and archives, orders "
        "them, and compares each date, firmware or host with a baseline. It also searches for changes of level, with "
        "a known rate of false alarms. Recordings that are not comparable are listed with the reason.",
    )
    parser.add_argument(
        "sources", nargs="+", type=Path, metavar="SOURCE", help="results folder, or file from 'archive create'"
    )
    parser.add_argument("--model", help="drive model, or a part of its name; needed if the sources have several")
    parser.add_argument("--drive", help="only this drive of the model")
    parser.add_argument("--by", choices=_ORDERS, default="date", help="what a point is (default: date)")
    parser.add_argument(
        "--baseline",
        default="FIRST",
        metavar="NAME",
        help="date, firmware or host to compare with (default: FIRST, the earliest)",
    )
    parser.add_argument("--margin", metavar="SHARE", help="smaller differences count as the same (default: 5%%)")
    parser.add_argument(
        "--fail-on",
        type=outcomes,
        default=[],
        metavar="OUTCOME,...",
        help="exit with status 4 if a test is now slower than the baseline, 5 if any is different, 6 if any is "
        "undecided: these words",
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument(
        "--all", action="store_true", help="list every metric, also IOPS, throughput and mean latency that say the same"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="PAGE.html", help="also write a page with a chart per test"
    )
    parser.set_defaults(handler=_trend)


def _trend(options: argparse.Namespace) -> int:
    from drivelab.core.terminal import wide_console
    from drivelab.trend.text import failing, lines, to_json
    from drivelab.trend.trend import Terms, trend

    judged = {} if options.margin is None else {"margin_pct": margin_pct(options.margin)}
    terms = Terms(options.by, options.baseline, model=options.model, drive=options.drive, **judged)
    found = trend(options.sources, terms)
    if options.json:
        print(to_json(found))
    else:
        console = wide_console()
        for line, style in lines(found, every=options.all):
            console.print(line, style=style, markup=False)
    if options.output is not None:
        from drivelab.trend.page import write

        write(found, options.output)
        print(f"page: {options.output}", file=sys.stderr)
    refused = failing(found, options.fail_on)
    for key, count in refused.items():
        print(f"drivelab: {counted(count, 'test')} {key}, which --fail-on refuses", file=sys.stderr)
    return min((FAILED[key] for key in refused), default=0)
