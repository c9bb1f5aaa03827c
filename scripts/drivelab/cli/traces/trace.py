"""`drivelab trace`: decode, import, derive and inspect traces; each group of actions has its own module."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from drivelab.cli.traces import trace_filter, trace_formats, trace_info
from drivelab.cli.traces.action import add_action, output


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
    for module in (trace_info, trace_formats, trace_filter):
        module.add_actions(actions)


def _decode(options: argparse.Namespace) -> int:
    from drivelab.trace.decode import decode
    from drivelab.trace.parquet_schema import has_queue_times

    summary = decode(options.source, options.output, device=options.device)
    if options.json:
        print(json.dumps(summary, indent=1))
        return 0
    actions = " ".join(f"{name} {count}" for name, count in summary["events_by_action"].items())
    print(f"{options.output}: {summary['requests']} requests of {summary['events']} events ({actions})")
    if not has_queue_times(summary):
        print("no queue events: requests begin when they were issued to the drive")
    for kind, title in (("unmatched", "unmatched"), ("lost", "LOSSY, missing")):
        if counts := summary[kind]:
            print(f"{title}: " + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items()))
    return 0


def _list(options: argparse.Namespace) -> int:
    from drivelab.core.units import format_amount
    from drivelab.trace import trace_catalogue

    entries = trace_catalogue.load().values()
    if options.json:
        print(json.dumps([{**asdict(entry), "path": str(entry.path)} for entry in entries], indent=1))
        return 0
    for entry in entries:
        capacity = format_amount(entry.capacity_bytes)
        print(f"{entry.name}: {entry.title} ({entry.requests:,} requests, drive of {capacity})")
    return 0
