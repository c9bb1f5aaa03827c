"""`drivelab trace`: decode, import, derive and inspect traces; each group of actions has its own module."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from drivelab.cli.traces import trace_derive, trace_formats, trace_info


def add_parser(commands: Any) -> None:
    """Register `trace` and its actions."""
    parser = commands.add_parser("trace", help="decode, import, derive and inspect traces")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    action = actions.add_parser(
        "decode",
        help="decode a raw capture to a Parquet trace",
        description="Turns the files of blktrace or of 'drivelab capture' into one row per request.",
    )
    action.add_argument(
        "source", type=Path, metavar="SOURCE", help="folder of a capture, base name as for blkparse -i, or merged dump"
    )
    action.add_argument("-o", "--output", type=Path, required=True, metavar="OUT.parquet", help="trace to write")
    action.add_argument(
        "--device", metavar="MAJOR:MINOR", help="device to decode, if the files have events of several devices"
    )
    action.add_argument("--json", action="store_true", help="print the summary as JSON")
    action.set_defaults(handler=_decode)
    action = actions.add_parser("list", help="list the traces of the catalogue in traces/")
    action.add_argument("--json", action="store_true", help="print the list as JSON")
    action.set_defaults(handler=_list)
    for module in (trace_info, trace_formats, trace_derive):
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
