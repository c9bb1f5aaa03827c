"""`drivelab capture` and `drivelab trace`: make traces, and look at them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def add_parser(commands: Any) -> None:
    """Register `capture` and `trace`."""
    one = commands.add_parser(
        "capture",
        help="trace the block requests of a command",
        description="Runs a command and keeps the requests that reach DEVICE meanwhile. Writes nothing to the device.",
    )
    one.add_argument("device", metavar="DEVICE", help="block device to trace, such as /dev/nvme0n1")
    one.add_argument("-o", "--output", type=Path, required=True, metavar="NAME", help="new folder for the raw capture")
    one.add_argument("command", nargs="+", metavar="COMMAND", help="what to run, after --")
    one.set_defaults(handler=_capture)

    top = commands.add_parser("trace", help="decode traces and look at them")
    actions = top.add_subparsers(title="actions", metavar="ACTION", required=True)
    one = actions.add_parser("decode", help="raw capture to a trace in Parquet")
    one.add_argument("source", type=Path, metavar="SOURCE", help="folder of a capture, or base name as for blkparse -i")
    one.add_argument("-o", "--output", type=Path, required=True, metavar="OUT.parquet")
    one.add_argument("--json", action="store_true", help="print the summary as JSON")
    one.set_defaults(handler=_decode)
    one = actions.add_parser("info", help="what a trace holds")
    one.add_argument("file", metavar="FILE", help="trace in Parquet, or a name of the catalogue in traces/")
    one.add_argument("--json", action="store_true", help="print it as JSON")
    one.set_defaults(handler=_info)


def _capture(options: argparse.Namespace) -> int:
    from drivelab.trace.capture import capture

    report = capture(options.device, options.command, options.output)
    _print(
        {
            "backend": report.backend,
            "events": report.events,
            "duration_s": round(report.duration_s, 3),
            "lost": report.lost or "nothing",
            "raw files": options.output / report.base,
        }
    )
    if report.exit_status:
        print(f"drivelab: the command ended with status {report.exit_status}", file=sys.stderr)
    return 1 if report.exit_status or report.lossy else 0


def _decode(options: argparse.Namespace) -> int:
    from drivelab.trace.decode import decode
    from drivelab.trace.schema import write_trace

    decoded = decode(options.source)
    write_trace(decoded.requests, decoded.provenance, options.output)
    _show(decoded.summary, options.json)
    return 0


def _info(options: argparse.Namespace) -> int:
    from drivelab.trace import catalogue
    from drivelab.trace.characterise import characterise
    from drivelab.trace.schema import read_trace

    path = Path(options.file)
    if path.suffix == ".parquet":
        requests, provenance = read_trace(path)
    else:
        requests, provenance = catalogue.open_trace(options.file)
    row = characterise(requests.to_pandas(), provenance, path.stem)
    _show({**json.loads(row.to_json(orient="records"))[0], "provenance": provenance}, options.json)
    return 0


def _show(facts: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(facts, indent=1, default=str))
    else:
        _print(facts)


def _print(facts: Mapping[str, Any], indent: str = "") -> None:
    for name, value in facts.items():
        if isinstance(value, dict):
            print(f"{indent}{name}:" + ("" if value else " none"))
            _print(value, indent + "  ")
        else:
            print(f"{indent}{name}: {value}")
