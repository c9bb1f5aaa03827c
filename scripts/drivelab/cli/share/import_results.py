"""`drivelab import`: turn results of other tools, or printed ones, into tables and report pages."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.terminal import print_json, visible
from drivelab.core.units import counted
from drivelab.imported import IMPORTED, importers, read


def add_parser(commands: Any) -> None:
    """Register `import`."""
    kinds = {kind: what for kind, (_, what) in importers().items()}
    parser = commands.add_parser(
        "import",
        help="import results of TKperf or fio, or printed ones, as tables and report",
        description="Turns results that drivelab did not measure into the tables of a study. Facts that the "
        "source does not give stay unknown. " + "; ".join(f"{kind}: {what}" for kind, what in kinds.items()) + ".",
    )
    parser.add_argument("kind", choices=kinds, metavar="KIND", help=", ".join(kinds))
    parser.add_argument("path", type=Path, metavar="PATH", help="file or folder of the results")
    parser.add_argument("--drive", required=True, metavar="NAME", help="name for the drive")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help="folder for the tables")
    parser.add_argument("--report", type=Path, metavar="FILE.html", help="also write the report to this file")
    parser.add_argument("--date", metavar="YYYY-MM-DD", help="tkperf: date of the test, if the file does not give it")
    parser.add_argument(
        "--unit",
        help="values: unit of the numbers in a table of block sizes, if the columns do not give it or give it wrongly, "
        "such as MB/s for MiB/s; must be a unit of the same quantity (IOPS, MB/s, MiB/s, us, ms …)",
    )
    parser.add_argument("--pattern", choices=("random", "sequential"), help="values: access pattern")
    parser.flag("--json", "print a summary as JSON")
    parser.set_defaults(handler=_import)


def _import(options: argparse.Namespace) -> int:
    if not options.drive or "/" in options.drive:
        raise UserError(f"--drive is '{options.drive}'; give a name for the drive, without a slash")
    from drivelab.imported.tables import tables_of, write_tables

    _check_output(options.output)
    own = {name: getattr(options, name) for name in ("date", "unit", "pattern")}
    recordings = read(options.kind, options.path, options.drive, own)
    for fault in dict.fromkeys(fault for recording in recordings for fault in recording.left_out):
        print(f"drivelab: left out: {visible(fault)}", file=sys.stderr)
    tables = tables_of(recordings)
    write_tables(tables, recordings, options.path, options.output)
    if options.report:
        from drivelab.imported.imported_report import draw_figures, report_of
        from drivelab.report.html import render

        figures = draw_figures(tables, recordings, options.output / "figures")
        page = render(report_of(tables, recordings, options.path, datetime.now(UTC), figures))
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(page, encoding="utf-8")
    rows = {name: len(frame) for name, frame in tables.items()}
    if options.json:
        print_json({"recordings": [recording.name for recording in recordings], "rows": rows})
        return 0
    for recording in recordings:
        values = int(
            (tables["summary"][["drive", "measurement"]] == [recording.drive, recording.measurement]).all(axis=1).sum()
        )
        cells = len({(row["workload"], row["threads"], row["queue_depth"]) for row in recording.cells})
        of_cells = f"{counted(cells, 'cell')}, " if cells else ""
        print(f"{recording.name}: {recording.title}, {of_cells}{counted(values, 'value')}")
    print(f"{options.output / 'tables'}: " + ", ".join(f"{name} {count}" for name, count in rows.items()))
    return 0


def _check_output(out: Path) -> None:
    """Raise UserError if the folder holds results of a study, whose tables the import would overwrite."""
    foreign = [name for name in ("study.txt", "recordings") if (out / name).exists()]
    if not foreign and (out / "tables").exists() and not (out / IMPORTED).exists():
        foreign = ["tables"]
    if foreign:
        raise UserError(
            f"{out}: holds the results of a study ({foreign[0]}), which the import would overwrite; name a new "
            "folder with -o"
        )
