"""`drivelab trace`: decode, import and export traces; trace_info and trace_filter have the other actions."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from drivelab.cli.traces import trace_filter, trace_info
from drivelab.cli.traces.action import FILE, FORMAT, TRACE, Answer, add_action, output


def add_parser(commands: Any) -> None:
    """Register `trace` and its actions."""
    parser = commands.add_parser("trace", help="decode, import, derive and inspect traces")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    source = "folder of a capture, base name as for blkparse -i, or merged dump"
    device = "device to decode, if the files have events of several devices"
    arguments = {
        "source": {"type": Path, "metavar": "SOURCE", "help": source},
        "--output": output("OUT.parquet", "trace to write"),
        "--device": {"metavar": "MAJOR:MINOR", "help": device},
    }
    more = "Turns the files of blktrace or of 'drivelab capture' into one row per request."
    add_action(actions, "decode", _decode, "decode a raw capture to a Parquet trace", arguments, more)
    add_action(actions, "list", _list, "list the traces of the catalogue in traces/", {})
    _add_conversions(actions)
    for module in (trace_info, trace_filter):
        module.add_actions(actions)


def _add_conversions(actions: Any) -> None:
    volume = "volume to import, if the file holds several; '?' names the largest"
    limit = {"type": _count, "default": 0, "metavar": "N", "help": "malformed lines to allow (default: 0)"}
    arguments = {
        "file": FILE,
        "--format": FORMAT,
        "--volume": {"metavar": "V", "help": volume},
        "--max-malformed": limit,
        "--output": output("OUT.parquet", "trace to write"),
    }
    more = "Imports one volume of a trace file. Decompresses gzip, zstd and bzip2. See docs/trace_formats.md."
    add_action(actions, "import", _import, "import a trace of another format to Parquet", arguments, more)
    arguments = {
        "trace": TRACE,
        "--format": {"required": True, "metavar": "F", "help": "fio-iolog-v3"},
        "--name": {"default": "trace", "metavar": "NAME", "help": "file name inside an iolog (default: trace)"},
        "--output": output("OUT", "file to write; compressed if its name ends with .gz or .zst"),
    }
    add_action(actions, "export", _export, "export a Parquet trace to another format", arguments)
    add_action(actions, "formats", _formats, "list the formats for import and export", {})


def _decode(options: argparse.Namespace) -> Answer:
    from drivelab.trace.decode import decode

    summary = decode(options.source, options.output, device=options.device)
    return summary, _decode_lines(summary, options.output)


def _decode_lines(summary: Mapping[str, Any], output: Path) -> Iterator[str]:
    from drivelab.trace.parquet_schema import has_queue_times

    actions = " ".join(f"{name} {count}" for name, count in summary["events_by_action"].items())
    yield f"{output}: {summary['requests']} requests of {summary['events']} events ({actions})"
    if not has_queue_times(summary):
        yield "no queue events: requests begin when they were issued to the drive"
    for kind, title in (("unmatched", "unmatched"), ("lost", "LOSSY, missing")):
        if counts := summary[kind]:
            yield f"{title}: " + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())


def _list(options: argparse.Namespace) -> Answer:
    from drivelab.core.units import format_amount
    from drivelab.trace import trace_catalogue

    entries = trace_catalogue.load().values()
    return [{**asdict(entry), "path": str(entry.path)} for entry in entries], (
        f"{entry.name}: {entry.title} ({entry.requests:,} requests, drive of {format_amount(entry.capacity_bytes)})"
        for entry in entries
    )


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of 0 or more")
    return int(text)


def _import(options: argparse.Namespace) -> Answer:
    from drivelab.trace.formats.common.importing import import_trace

    wanted = {"format_name": options.format, "volume": options.volume, "max_malformed": options.max_malformed}
    report = asdict(import_trace(options.file, options.output, **wanted))
    return report, _import_lines({**report})


def _import_lines(report: dict[str, Any]) -> Iterator[str]:
    unterminated = report.pop("unterminated")
    for line in report.pop("malformed_first"):
        yield f"malformed: {', '.join(f'{name} {value}' for name, value in line.items())}"
    yield from _facts(report)
    if unterminated:
        yield "the last line has no newline; it was imported, but the file may be truncated"


def _export(options: argparse.Namespace) -> Answer:
    from drivelab.trace import trace_catalogue
    from drivelab.trace.formats.common.exporting import export_trace

    source = trace_catalogue.locate(options.trace)
    report = asdict(export_trace(source, options.output, format_name=options.format, volume=options.name))
    return report, _facts(report)


def _formats(options: argparse.Namespace) -> Answer:
    from drivelab.trace.formats import all_formats

    formats = [
        {"name": form.name, "what": form.title, "columns": form.columns, "units": form.units, "import": True,
         "export": form.write is not None}
        for form in all_formats().values()
    ]  # fmt: skip
    return formats, (
        f"{form['name']}: {form['what']} ({', '.join(way for way in ('import', 'export') if form[way])})\n"
        f"  columns: {form['columns']}\n  units: {form['units']}"
        for form in formats
    )


def _facts(facts: Mapping[str, Any]) -> Iterator[str]:
    for name, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{kind} {count}" for kind, count in value.items()) or "none"
        if value not in (None, ""):
            yield f"{name.replace('_', ' ')}: {value}"
