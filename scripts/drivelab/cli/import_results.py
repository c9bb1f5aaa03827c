"""`drivelab import`: results of other tools, and printed ones, as tables and report pages like a study's."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.errors import UserError
from drivelab.imported import IMPORTED

if TYPE_CHECKING:
    from drivelab.imported.tables import Recording

KINDS = {
    "tkperf": "XML file of TKperf",
    "fio-json": "fio's JSON output: a file, or a folder of files",
    "fio-plot": "folder that bench-fio of fio-plot wrote",
    "values": "CSV file of printed numbers",
    "fio-log": "fio's log of single I/Os, to one Parquet file",
}


def add_parser(commands: Any) -> None:
    """Register `import`."""
    one = commands.add_parser(
        "import",
        help="results of TKperf, fio, bench-fio or printed ones, as tables and report",
        description="Turns results that drivelab did not measure into the tables of a study. What the origin does not "
        "say stays unknown. " + "; ".join(f"{kind}: {what}" for kind, what in KINDS.items()) + ".",
    )
    one.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    one.add_argument("path", type=Path, metavar="PATH", help="file or folder of the results")
    one.add_argument("--drive", metavar="NAME", help="what to call the drive; not for fio-log")
    one.add_argument(
        "-o", "--output", type=Path, required=True, metavar="OUT", help="folder for the tables; for fio-log a file"
    )
    one.add_argument("--report", type=Path, metavar="FILE.html", help="write the report pages too")
    one.add_argument("--date", metavar="YYYY-MM-DD", help="tkperf: when the test ran, if the file does not say")
    one.add_argument(
        "--unit",
        help="values: of the numbers in a table of block sizes, if the columns do not say it or say it "
        "wrongly, such as MB/s for MiB/s; never another quantity (IOPS, MB/s, MiB/s, us, ms …)",
    )
    one.add_argument("--pattern", choices=("random", "sequential"), help="values: of the accesses")
    one.add_argument(
        "--fio-2-offset", action="store_true", help="fio-log: the fifth and last column is the offset, as in fio 2"
    )
    one.add_argument("--max-malformed", type=int, default=0, metavar="N", help="fio-log: lines to let go, default 0")
    one.add_argument("--json", action="store_true", help="print what was imported as JSON")
    one.set_defaults(handler=_import)


def _import(options: argparse.Namespace) -> int:
    if options.kind == "fio-log":
        return _log(options)
    if not options.drive or "/" in options.drive:
        raise UserError("an import needs the name of the drive, without a slash; give --drive NAME")
    from drivelab.imported.tables import tables_of, write_tables

    _check_output(options.output)
    recordings = _recordings(options)
    tables = tables_of(recordings)
    write_tables(tables, recordings, options.path, options.output)
    if options.report:
        from drivelab.imported.figures import draw_figures
        from drivelab.imported.report import report_of
        from drivelab.report.html import render

        figures = draw_figures(tables, recordings, options.output / "figures")
        page = render(report_of(tables, recordings, options.path, datetime.now(UTC), figures))
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(page, encoding="utf-8")
    rows = {name: len(frame) for name, frame in tables.items()}
    if options.json:
        print(json.dumps({"recordings": [one.name for one in recordings], "rows": rows}, indent=1))
        return 0
    for one in recordings:
        of_one = int(
            (tables["summary"]["drive"].eq(one.drive) & tables["summary"]["measurement"].eq(one.measurement)).sum()
        )
        print(f"{one.name}: {one.title}, {len(one.cells)} cells, {of_one} values")
    print(f"{options.output / 'tables'}: " + ", ".join(f"{name} {count}" for name, count in rows.items()))
    return 0


def _check_output(out: Path) -> None:
    """Raises UserError for a folder that holds anything of a study: its tables would be written over."""
    of_study = [name for name in ("study.txt", "recordings") if (out / name).exists()]
    if not of_study and (out / "tables").exists() and not (out / IMPORTED).exists():
        of_study = ["tables"]
    if of_study:
        raise UserError(
            f"{out}: holds the results of a study ({of_study[0]}), which the import would overwrite; give -o a folder "
            "of its own"
        )


def _recordings(options: argparse.Namespace) -> list[Recording]:
    from drivelab.imported import fio_json, fio_plot, printed, tkperf

    path, drive = options.path, options.drive
    if options.kind == "tkperf":
        return tkperf.read(path, drive, options.date)
    if options.kind == "values":
        return printed.read(path, drive, unit=options.unit, pattern=options.pattern)
    return fio_json.read(path, drive) if options.kind == "fio-json" else fio_plot.read(path, drive)


def _log(options: argparse.Namespace) -> int:
    from drivelab.fio.io_log import convert

    found = convert(
        options.path, options.output, fio_2_offset=options.fio_2_offset, max_malformed=options.max_malformed
    )
    if options.json:
        facts = {"rows": found.rows, "columns": found.columns, "malformed": found.malformed}
        print(json.dumps(facts, indent=1))
        return 0
    print(f"{options.output}: {found.rows} I/Os, columns {', '.join(found.columns)}")
    if found.malformed:
        shown = ", ".join(f"{number} ({reason})" for number, reason in found.first_malformed)
        print(f"left out, {found.malformed} malformed lines: {shown}")
    return 0
