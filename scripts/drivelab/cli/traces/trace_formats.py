"""`drivelab trace import`, `volumes`, `export`, `formats`: convert traces of other formats."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def add_actions(actions: Any) -> None:
    """Register the actions with the sub-parsers of `drivelab trace`."""
    action = actions.add_parser(
        "import",
        help="import a trace of another format to Parquet",
        description="Imports one volume of a trace file, or several for one replay. Decompresses gzip, zstd and bzip2. "
        "See docs/trace_formats.md.",
    )
    action.add_argument("file", type=Path, metavar="FILE", help="trace file in another format")
    action.add_argument("--format", metavar="F", help="format of the file (default: detected from the content)")
    action.add_argument(
        "--volume", action="append", metavar="V", help="volume to import, if the file holds several; repeatable"
    )
    action.add_argument(
        "--max-malformed", type=_count, default=0, metavar="N", help="malformed lines to allow (default: 0)"
    )
    action.add_argument("-o", "--output", type=Path, required=True, metavar="OUT.parquet", help="trace to write")
    action.add_argument("--json", action="store_true", help="print the report as JSON")
    action.set_defaults(handler=_import)

    action = actions.add_parser("volumes", help="list the volumes of a trace file and their requests")
    action.add_argument("file", type=Path, metavar="FILE", help="trace file in another format")
    action.add_argument("--format", metavar="F", help="format of the file (default: detected from the content)")
    action.add_argument("--json", action="store_true", help="print the list as JSON")
    action.set_defaults(handler=_volumes)

    action = actions.add_parser("export", help="export a Parquet trace to another format")
    action.add_argument("trace", metavar="TRACE", help="trace in Parquet, or a name of the catalogue in traces/")
    action.add_argument("--format", required=True, metavar="F", help="fio-iolog-v3 or blkparse-text")
    action.add_argument("--name", default="trace", metavar="NAME", help="file name inside an iolog (default: trace)")
    action.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="OUT",
        help="file to write; compressed if its name ends with .gz or .zst",
    )
    action.add_argument("--json", action="store_true", help="print the report as JSON")
    action.set_defaults(handler=_export)

    action = actions.add_parser("formats", help="list the formats for import and export")
    action.add_argument("--json", action="store_true", help="print the list as JSON")
    action.set_defaults(handler=_formats)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of 0 or more")
    return int(text)


def _import(options: argparse.Namespace) -> int:
    from drivelab.trace.formats.common.importing import import_trace

    report = import_trace(
        options.file,
        options.output,
        format_name=options.format,
        volume=options.volume,
        max_malformed=options.max_malformed,
    ).as_dict()
    if options.json:
        print(json.dumps(report, indent=1))
        return 0
    for line in report.pop("malformed_first"):
        print(f"malformed: {', '.join(f'{name} {value}' for name, value in line.items())}")
    unterminated = report.pop("unterminated")
    _print(report)
    if unterminated:
        print("the last line has no newline; it was imported, but the file may be truncated")
    return 0


def _volumes(options: argparse.Namespace) -> int:
    from drivelab.trace.formats.common.importing import list_volumes

    volumes, tally = list_volumes(options.file, format_name=options.format)
    if options.json:
        print(json.dumps({"volumes": volumes, "malformed": tally.malformed}, indent=1))
        return 0
    for name, count in volumes.items():
        print(f"{name or '(the format has no volumes)'}: {count}")
    if tally.malformed:
        print(f"malformed {tally.unit}s: {tally.malformed}, the first is {tally.first[0][0]} ({tally.first[0][1]})")
    return 0


def _export(options: argparse.Namespace) -> int:
    from drivelab.trace import trace_catalogue
    from drivelab.trace.formats.common.exporting import export_trace

    report = export_trace(
        trace_catalogue.locate(options.trace), options.output, format_name=options.format, volume=options.name
    ).as_dict()
    if options.json:
        print(json.dumps(report, indent=1))
    else:
        _print(report)
    return 0


def _formats(options: argparse.Namespace) -> int:
    from drivelab.trace.formats import all_formats

    formats = [
        {
            "name": form.name,
            "what": form.title,
            "columns": form.columns,
            "units": form.units,
            "import": form.read is not None,
            "export": form.write is not None,
        }
        for form in all_formats().values()
    ]
    if options.json:
        print(json.dumps(formats, indent=1))
        return 0
    for form in formats:
        ways = [way for way in ("import", "export") if form[way]]
        print(f"{form['name']}: {form['what']} ({', '.join(ways)})")
        print(f"  columns: {form['columns']}\n  units: {form['units']}")
    return 0


def _print(facts: Mapping[str, Any]) -> None:
    for name, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{kind} {count}" for kind, count in value.items()) or "none"
        if value not in (None, ""):
            print(f"{name.replace('_', ' ')}: {value}")
