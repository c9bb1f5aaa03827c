"""`drivelab capture`: trace the block requests of a command."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from drivelab.trace.capturing.capture_report import LOSSES, CaptureReport


def add_parser(commands: Any) -> None:
    """Register `capture`."""
    parser = commands.add_parser(
        "capture",
        help="trace the block requests of a command",
        description="Runs a command and records the block requests that reach DEVICE meanwhile. Tracing writes nothing "
        "to the device.",
    )
    parser.add_argument("device", metavar="DEVICE", help="block device to trace, such as /dev/nvme0n1")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="NAME", help="new folder for the raw capture"
    )
    parser.add_argument(
        "--backend", choices=("blktrace", "ftrace"), help="tracer (default: the one that this kernel supports)"
    )
    parser.add_argument("--json", action="store_true", help="print the whole report as JSON")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="command to run, after --")
    parser.set_defaults(handler=_capture)


def _capture(options: argparse.Namespace) -> int:
    from drivelab.trace.capturing.capture import capture

    try:
        report = capture(options.device, options.command, options.output, backend=options.backend)
    except KeyboardInterrupt:
        print("drivelab: interrupted; the tracer is reset, and no capture was written", file=sys.stderr)
        return 130
    if options.json:
        print(json.dumps(asdict(report), indent=1))
    else:
        print("\n".join(_lines(report, options.output)))
    if report.exit_status:
        print(f"drivelab: the command ended with status {report.exit_status}", file=sys.stderr)
    return 1 if report.exit_status or report.lossy else 0


def _lines(report: CaptureReport, output: Path) -> Iterator[str]:
    """Yield the lines of a summary of the capture."""
    yield f"application duration: {report.duration_s:.3f} s, measured while tracing (lower is better)"
    memory = "" if report.max_rss_bytes is None else f", peak memory {report.max_rss_bytes / 2**20:.0f} MiB"
    yield f"CPU time of the command: {report.user_s:.2f} s user, {report.system_s:.2f} s system{memory}"
    yield f"events: {report.events} ({report.events_per_s:.0f}/s) through {report.backend}"
    yield f"requests completed by {report.device}: {report.device_requests}"
    yield f"lost: {'' if report.lost else 'nothing'}"
    for kind, count in report.lost.items():
        yield f"  {count} {kind}: {LOSSES.get(kind, kind)}"
    yield from (f"  {remark}" for remark in report.remarks)
    yield f"raw files: {output / report.base}"
