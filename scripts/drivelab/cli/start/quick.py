"""`drivelab quick`: look at a folder, a device or a drive in a few minutes, as it is."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from drivelab.cli.start.init import project_or_home
from drivelab.core.errors import UserError
from drivelab.core.terminal import print_json, say, wide_console
from drivelab.plan.places import COMMAND

_SHEET = Path("config/drives.tsv")
_LEAST_S = 60.0


def add_parser(commands: Any) -> None:
    """Register `quick`."""
    parser = commands.add_parser(
        "quick",
        help="look at any folder, device or drive in five minutes, as it is",
        description="Measures what people know of a drive, and what they should know, as it is now. In a folder it "
        "uses a temporary file that leaves nothing behind, and needs no root. A block device is only read. The data "
        "on a drive of config/drives.tsv are destroyed. Several places are measured in turns and compared.",
    )
    parser.add_argument("places", nargs="*", metavar="PLACE", help="folder, /dev/DEVICE, or drive of config/drives.tsv")
    parser.add_argument("--time", default="5min", metavar="TIME", help="time for each place, about (default: 5min)")
    parser.add_argument("--size", metavar="SIZE", help="size of the file or range (default: as before, or up to 8GiB)")
    parser.flag("--json", "print everything as JSON")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="page to write (default: in results/quick)")
    parser.flag("--history", "show how these places, or all, changed over time")
    parser.flag("--yes", "allow writes to a real drive of the sheet")
    parser.set_defaults(handler=_quick)


def _refuse_unwritable(page: Path) -> None:
    """Raise UserError if a page cannot be written, before minutes of measuring."""
    existing = next(path for path in (page, *page.parents) if path.exists())
    if page.is_dir() or not os.access(existing, os.W_OK) or not (existing == page or existing.is_dir()):
        raise UserError(f"the page {page} cannot be written; name another file after -o")


def _quick(options: argparse.Namespace) -> int:
    from drivelab.core.units import format_size, parse_duration, parse_size
    from drivelab.host.temporary import recover_all
    from drivelab.plan.drive_sheet import load_sheet
    from drivelab.quick.session import agree, all_warnings, announcement, as_mapping, plan_looks, show, take
    from drivelab.quick.subjects import LEAST_BYTES, subject_of

    if options.history:
        return _history(options)
    if not options.places:
        raise UserError(f"name a place to look at, such as the current folder: {COMMAND} quick .")
    time_s = parse_duration(options.time)
    if time_s < _LEAST_S:
        raise UserError(f"--time is {options.time}; a look needs at least 1min")
    size_bytes = None if options.size is None else parse_size(options.size)
    if size_bytes is not None and size_bytes < LEAST_BYTES:
        raise UserError(f"--size is {options.size}; a look needs at least {format_size(LEAST_BYTES)}")
    project = project_or_home()
    sheet = load_sheet(project / _SHEET) if (project / _SHEET).exists() else {}
    rows = [subject_of(text, sheet, _SHEET) for text in options.places]
    output = None if options.output is None else options.output.absolute()
    if output is not None:
        _refuse_unwritable(output)
    say(*recover_all(), stderr=True)
    here = Path.cwd()
    os.chdir(project)
    planned = plan_looks(rows, time_s, size_bytes)
    screen = wide_console(stderr=options.json)
    for line in announcement(planned):
        screen.print(line, markup=False)
    agree(planned, options.yes)
    try:
        places = take(planned)
    except KeyboardInterrupt:
        print("drivelab: interrupted; this look ends here, and the next one starts from the beginning", file=sys.stderr)
        return 130
    from drivelab.quick.page import write  # imports matplotlib, which is slow

    page = output or (planned.page if here == project else project / planned.page)
    found = all_warnings(planned, places)
    write(places, planned.campaign, found, page)
    if options.json:
        print_json(as_mapping(places, found, str(page)))
    else:
        show(places, found, str(page))
    return 0


def _history(options: argparse.Namespace) -> int:
    from drivelab.quick.history import histories, show
    from drivelab.quick.study import RESULTS

    wanted = [str(Path(text).resolve()) if Path(text).exists() else text for text in options.places]
    os.chdir(project_or_home())
    found = histories(RESULTS, wanted)
    if options.json:
        print_json([
            {"name": looks[-1].name, "place": looks[-1].place, "looks": [look.to_mapping() for look in looks]}
            for looks in found
        ])  # fmt: skip
    for looks in found if not options.json else ():
        show(looks)
    return 0
