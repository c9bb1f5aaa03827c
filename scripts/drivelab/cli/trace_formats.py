"""`drivelab trace import`, `volumes`, `export` and `formats`: traces of other makers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def add_actions(actions: Any) -> None:
    """Register the actions with the sub-parsers of `drivelab trace`."""
    one = actions.add_parser(
        "import",
        help="trace of another format to Parquet",
        description="Imports one volume of a trace file; gzip, zstd and bzip2 are undone. See docs/trace_formats.md.",
    )
    one.add_argument("file", type=Path, metavar="FILE", help="a trace in a format of others")
    one.add_argument("--format", metavar="F", help="format of the file (default: told from its content)")
    one.add_argument("--volume", metavar="V", help="which volume, where the file holds several")
    one.add_argument(
        "--max-malformed", type=_count, default=0, metavar="N", help="malformed lines that are let go (default: 0)"
    )
    one.add_argument("-o", "--output", type=Path, required=True, metavar="OUT.parquet", help="the trace that is made")
    one.add_argument("--json", action="store_true", help="print the report as JSON")
    one.set_defaults(handler=_import)

    one = actions.add_parser("volumes", help="volumes of a trace of another format, and their requests")
    one.add_argument("file", type=Path, metavar="FILE", help="a trace in a format of others")
    one.add_argument("--format", metavar="F", help="format of the file (default: told from its content)")
    one.add_argument("--json", action="store_true", help="print them as JSON")
    one.set_defaults(handler=_volumes)

    one = actions.add_parser("export", help="trace in Parquet to another format")
    one.add_argument("trace", metavar="TRACE", help="trace in Parquet, or a name of the catalogue in traces/")
    one.add_argument("--format", required=True, metavar="F", help="fio-iolog-v3 or blkparse-text")
    one.add_argument("--name", default="trace", metavar="NAME", help="file name inside an iolog (default: trace)")
    one.add_argument(
        "-o", "--output", type=Path, required=True, metavar="OUT", help="file; compressed when it ends with .gz or .zst"
    )
    one.add_argument("--json", action="store_true", help="print the report as JSON")
    one.set_defaults(handler=_export)

    one = actions.add_parser("formats", help="formats that can be imported and exported")
    one.add_argument("--json", action="store_true", help="print them as JSON")
    one.set_defaults(handler=_formats)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number from 0")
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
    for one in report.pop("malformed_first"):
        print(f"malformed: {', '.join(f'{name} {value}' for name, value in one.items())}")
    unterminated = report.pop("unterminated")
    _print(report)
    if unterminated:
        print("the last line has no newline; it was taken as it is, but the file may be cut off there")
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
    from drivelab.trace import catalogue
    from drivelab.trace.formats.common.exporting import export_trace

    report = export_trace(
        catalogue.locate(options.trace), options.output, format_name=options.format, volume=options.name
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
            "name": one.name,
            "what": one.title,
            "columns": one.columns,
            "units": one.units,
            "import": one.read is not None,
            "export": one.write is not None,
        }
        for one in all_formats().values()
    ]
    if options.json:
        print(json.dumps(formats, indent=1))
        return 0
    for one in formats:
        ways = [way for way in ("import", "export") if one[way]]
        print(f"{one['name']}: {one['what']} ({', '.join(ways)})")
        print(f"  columns: {one['columns']}\n  units: {one['units']}")
    return 0


def _print(facts: Mapping[str, Any]) -> None:
    for name, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{kind} {count}" for kind, count in value.items()) or "none"
        if value not in (None, ""):
            print(f"{name.replace('_', ' ')}: {value}")
