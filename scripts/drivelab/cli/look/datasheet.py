"""`drivelab datasheet`: does a drive meet its data sheet?"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.core.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

FAILED, UNDECIDED = 3, 4
"""Exit statuses if a value fails, and if none fails but drivelab cannot tell for some."""


def add_parser(commands: Any) -> None:
    """Register `datasheet`."""
    parser = commands.add_parser(
        "datasheet",
        help="compare what was measured with the drive's data sheet",
        description="Compares the measured values with the rated ones of config/ratings: pass if the whole 95 % "
        "interval is within the rated value and its tolerance, fail if none of it is, else cannot tell. Exit status: 0 "
        f"if all values pass, {FAILED} if one fails, {UNDECIDED} if none fails but drivelab cannot tell for some.",
    )
    parser.add_argument("drive", nargs="?", metavar="DRIVE", help="drive (default: all that have a data sheet)")
    parser.add_argument(
        "--ratings", type=Path, action="append", metavar="FILE", help="file of ratings (default: all of config/ratings)"
    )
    parser.add_argument("--results", type=Path, default=Path("results"), metavar="DIR", help="results folder (results)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.set_defaults(handler=_datasheet)


def _datasheet(options: argparse.Namespace) -> int:
    from drivelab.explore.datasheet import CANNOT_TELL, FAIL, data_sheet_check
    from drivelab.plan.ratings import RATINGS, load_data_sheet

    paths = options.ratings or sorted(RATINGS.glob("*.yaml"))
    if not paths:
        raise UserError(f"{RATINGS} has no ratings; write one (see docs/how-to/datasheet.md), or use --ratings FILE")
    checked = data_sheet_check(options.results, [load_data_sheet(path) for path in paths], options.drive)
    if options.json:
        json.dump(json.loads(checked.to_json(orient="records", double_precision=15)), sys.stdout, indent=1)
        print()
    else:
        _show(checked)
    verdicts = set(checked["verdict"])
    return FAILED if FAIL in verdicts else UNDECIDED if CANNOT_TELL in verdicts else 0


def _show(checked: pd.DataFrame) -> None:
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    from drivelab.core.terminal import print_table, wide_console
    from drivelab.explore.datasheet import CANNOT_TELL, FAIL, PASS, VERDICTS
    from drivelab.report.numbers import is_missing, number

    console = wide_console()
    colours = {PASS: "green", FAIL: "bold red", CANNOT_TELL: "yellow"}
    for (drive, model), rows in checked.groupby(["drive", "model"], sort=False):
        counts = [f"{sum(rows['verdict'] == verdict)} {verdict}" for verdict in VERDICTS]
        labels = [label for label in ("reduced", "virtual") if rows[label].any()]
        how = f"; [yellow]{', '.join(labels)}[/]" if labels else ""
        console.print(f"[bold]{escape(f'{drive} ({model}): ' + ', '.join(counts))}[/]{how}")
        reasons = list(dict.fromkeys(reason for reason in rows["reason"] if reason))
        shown = Table(box=None, pad_edge=False)
        for name in ("workload", "value", "in"):
            shown.add_column(name)
        for name in ("rated", "limit", "measured", "95 % interval"):
            shown.add_column(name, justify="right")
        shown.add_column("verdict")
        for row in rows.itertuples():
            known = not is_missing(row.interval_low)
            mark = f" [{reasons.index(row.reason) + 1}]" if row.reason else ""
            shown.add_row(
                row.rating,
                row.heading,
                "" if is_missing(row.measurement) else _place(row.measurement, row.cell_label, row.rating),
                number(row.rated),
                number(row.limit),
                "" if is_missing(row.value) else number(row.value),
                f"{number(row.interval_low)} to {number(row.interval_high)}" if known else "",
                Text(f"{row.verdict}{mark}", style=colours[row.verdict]),
            )
        print_table(shown, console)
        for place, reason in enumerate(reasons, start=1):
            console.print(escape(f"[{place}] {reason}"))


def _place(measurement: str, label: str, workload: str) -> str:
    """Name the measurement, and the cell by what its label says beyond the workload, such as `soak`."""
    more = label.removeprefix(workload.rpartition(" ")[0]).strip()
    return f"{measurement}, {more}" if more else measurement
