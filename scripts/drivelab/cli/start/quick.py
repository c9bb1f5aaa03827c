"""`drivelab quick`: look at a folder, a device or a drive in a few minutes, as it is."""

from __future__ import annotations

import argparse
import os
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
    from drivelab.quick.session import agree, all_warnings, announcement, as_mapping, plan_look, show, take
    from drivelab.quick.study import RESULTS
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
    look = plan_look(rows, time_s, size_bytes)
    screen = wide_console(stderr=options.json)
    for line in announcement(look):
        screen.print(line, markup=False)
    agree(look, options.yes)
    try:
        places = take(look)
    except KeyboardInterrupt:
        kept = project / RESULTS / "recordings"
        say(f"drivelab: interrupted; what was measured is in {kept}, and the next look starts anew", stderr=True)
        return 130
    from drivelab.quick.page import write  # imports matplotlib, which is slow

    usual = RESULTS / f"{'-and-'.join(plan.drive for plan in look.plans)}.html"
    page = output or (usual if here == project else project / usual)
    found = all_warnings(look, places)
    labels = write(look, places, found, page)
    if options.json:
        print_json(as_mapping(look, places, found, labels, str(page)))
    else:
        show(look, places, found, labels, str(page))
    return 0


def _history(options: argparse.Namespace) -> int:
    from drivelab.quick.history import as_mapping, histories, show
    from drivelab.quick.study import RESULTS

    wanted = [str(Path(text).resolve()) if Path(text).exists() else text for text in options.places]
    os.chdir(project_or_home())
    found = histories(RESULTS, wanted)
    if options.json:
        print_json(list(map(as_mapping, found)))
    for looks in found if not options.json else ():
        show(looks)
    return 0
