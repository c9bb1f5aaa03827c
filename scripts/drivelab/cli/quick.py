"""`drivelab quick`: look at a folder, a device or a drive in a few minutes, and destroy nothing."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError

_SHEET = Path("config/drives.tsv")
_LEAST_S = 60.0


def add_parser(commands: Any) -> None:
    """Register `quick`."""
    parser = commands.add_parser(
        "quick",
        help="look at a folder, a device or a drive in five minutes; destroys nothing",
        description="Measures what people know of a drive, and what they should know, as it is now. In a folder it "
        "uses a temporary file that leaves nothing behind, and needs no root. A block device is only read. A drive of "
        "config/drives.tsv may be written to. Two places are measured in turns and compared.",
    )
    parser.add_argument("places", nargs="*", metavar="PLACE", help="folder, /dev/DEVICE, or drive of config/drives.tsv")
    parser.add_argument("--time", default="5min", metavar="TIME", help="longest time for each place (default: 5min)")
    parser.add_argument("--size", metavar="SIZE", help="size of the file or range, such as 4GiB (default: up to 8GiB)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="page to write (default: in results/quick)")
    parser.add_argument("--history", action="store_true", help="show how the places changed since earlier looks")
    parser.add_argument("--yes", action="store_true", help="allow writes to a real drive of the sheet")
    parser.set_defaults(handler=_quick)


def _quick(options: argparse.Namespace) -> int:
    from drivelab.core.units import parse_duration, parse_size
    from drivelab.plan.drive_sheet import load_sheet
    from drivelab.plan.schema import ROOT
    from drivelab.quick.page import write
    from drivelab.quick.result import as_mapping
    from drivelab.quick.session import agree, announcement, plan_looks, show, take
    from drivelab.quick.subjects import subject_of

    if options.history:
        return _history(options)
    if not options.places:
        raise UserError("name a place to look at, such as the current folder: ./drivelab quick .")
    time_s = parse_duration(options.time)
    if time_s < _LEAST_S:
        raise UserError(f"--time is {options.time}; a look needs at least 1min")
    size_bytes = None if options.size is None else parse_size(options.size)
    sheet = load_sheet(ROOT / _SHEET) if (ROOT / _SHEET).exists() else {}
    rows = [subject_of(text, sheet, _SHEET) for text in options.places]
    output = None if options.output is None else options.output.absolute()
    os.chdir(ROOT)  # configuration and results are those of the project
    planned = plan_looks(rows, time_s, size_bytes)
    announced = sys.stderr if options.json else sys.stdout
    print("\n".join(announcement(planned)), file=announced, flush=True)
    agree(planned, options.yes)
    places = take(planned)
    output = output or planned.page
    write(places, planned.warnings, output)
    if options.json:
        json.dump(as_mapping(places, planned.warnings, str(output)), sys.stdout, indent=1, ensure_ascii=False)
        print()
    else:
        show(places, str(output))
    return 0


def _history(options: argparse.Namespace) -> int:
    from drivelab.plan.schema import ROOT
    from drivelab.quick.history import as_mapping, histories, show
    from drivelab.quick.study import RESULTS

    wanted = [str(Path(text).resolve()) if Path(text).exists() else text for text in options.places]
    os.chdir(ROOT)
    found = histories(RESULTS, wanted)
    if options.json:
        json.dump([as_mapping(history) for history in found], sys.stdout, indent=1, ensure_ascii=False)
        print()
    else:
        for history in found:
            show(history)
    return 0
