"""`drivelab check-data`: compare a target with what a verified replay wrote, such as after a power cut."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any


def add_parser(commands: Any) -> None:
    """Register `check-data`."""
    parser = commands.add_parser(
        "check-data",
        help="check the data of a replay again",
        description="Reads back what 'drivelab replay --verify' wrote, and reports blocks that are lost, torn or "
        "misdirected. Use it after you cut the power of the drive. The target is only read. docs/replay.md explains "
        "what a drive has to keep.",
    )
    parser.add_argument("outcome", type=Path, metavar="OUT", help="the file that the replay wrote")
    parser.add_argument("--target", required=True, help="drive of the drive sheet, or path of a device or file")
    parser.add_argument("--volume", metavar="NAME", help="the volume that was replayed there, if there were several")
    parser.add_argument(
        "--power-cut", action="store_true", help="expect only writes with FUA, and those before a completed flush"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "--drives", type=Path, default=Path("config/drives.tsv"), metavar="SHEET", help="the drive sheet"
    )
    parser.set_defaults(handler=_check)


def _check(options: argparse.Namespace) -> int:
    from drivelab.cli.traces.replay import data_lines
    from drivelab.replay.verify.verification import wrong_blocks
    from drivelab.run.replays import single_replay

    checked = single_replay.check(
        options.outcome, options.target, sheet=options.drives, power_cut=options.power_cut, volume=options.volume
    )
    print(json.dumps(checked, indent=1) if options.json else "\n".join(data_lines(checked)))
    return 1 if wrong_blocks(checked) else 0
