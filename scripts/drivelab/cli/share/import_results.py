"""`drivelab import`: turn results of other tools, or printed ones, into tables and report pages."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.terminal import visible
from drivelab.core.units import counted
from drivelab.imported import IMPORTED, importers, read

LOG, LOG_READS = "fio-log", "fio's log of I/Os or averages, converted to one Parquet file"


def add_parser(commands: Any) -> None:
    """Register `import`."""
    kinds = {kind: what for kind, (_, what) in importers().items()} | {LOG: LOG_READS}
    parser = commands.add_parser(
        "import",
        help="import results of TKperf, fio or bench-fio, or printed ones, as tables and report",
        description="Turns results that drivelab did not measure into the tables of a study. Facts that the "
        "source does not give stay unknown. " + "; ".join(f"{kind}: {what}" for kind, what in kinds.items()) + ".",
    )
    parser.add_argument("kind", choices=kinds, metavar="KIND", help=", ".join(kinds))
    parser.add_argument("path", type=Path, metavar="PATH", help="file or folder of the results")
    parser.add_argument("--drive", metavar="NAME", help="name for the drive; not for fio-log")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="OUT", help="folder for the tables; for fio-log, a file"
    )
    parser.add_argument("--report", type=Path, metavar="FILE.html", help="also write the report to this file")
    parser.add_argument("--date", metavar="YYYY-MM-DD", help="tkperf: date of the test, if the file does not give it")
    parser.add_argument(
        "--unit",
        help="values: unit of the numbers in a table of block sizes, if the columns do not give it or give it wrongly, "
        "such as MB/s for MiB/s; must be a unit of the same quantity (IOPS, MB/s, MiB/s, us, ms …)",
    )
    parser.add_argument("--pattern", choices=("random", "sequential"), help="values: access pattern")
    parser.add_argument(
        "--fio-2-offset", action="store_true", help="fio-log: the fifth and last column is the offset, as in fio 2"
    )
    parser.add_argument(
        "--max-malformed", type=int, default=0, metavar="N", help="fio-log: malformed lines to allow (default 0)"
    )
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")
    parser.set_defaults(handler=_import)


def _import(options: argparse.Namespace) -> int:
    if options.kind == LOG:
        return _log(options)
    if not options.drive or "/" in options.drive:
        raise UserError("an import needs the name of the drive, without a slash; give --drive NAME")
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
        print(json.dumps({"recordings": [recording.name for recording in recordings], "rows": rows}, indent=1))
        return 0
    for recording in recordings:
        values = int(
            (
                tables["summary"]["drive"].eq(recording.drive)
                & tables["summary"]["measurement"].eq(recording.measurement)
            ).sum()
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


def _log(options: argparse.Namespace) -> int:
    from drivelab.imported.fio_log import convert

    conversion = convert(
        options.path, options.output, fio_2_offset=options.fio_2_offset, max_malformed=options.max_malformed
    )
    if options.json:
        facts = {"rows": conversion.rows, "columns": conversion.columns, "averaged": conversion.averaged,
                 "malformed": conversion.malformed}  # fmt: skip
        print(json.dumps(facts, indent=1))
        return 0
    what = "averages over log_avg_msec" if conversion.averaged else "I/Os"
    print(f"{options.output}: {conversion.rows} {what}, columns {', '.join(conversion.columns)}")
    if conversion.malformed:
        shown = ", ".join(f"{number} ({reason})" for number, reason in conversion.first_malformed)
        print(f"{conversion.malformed} malformed lines left out: {shown}")
    return 0
