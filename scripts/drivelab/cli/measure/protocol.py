"""`drivelab protocol`: list the protocols, show what one does to a drive, check a file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.cli.completion import completed_by, drives, protocols, traces
from drivelab.core.errors import UserError
from drivelab.core.terminal import print_json, print_table
from drivelab.core.units import counted
from drivelab.plan.places import ROOT

if TYPE_CHECKING:
    from drivelab.campaign.estimate import Trace
    from drivelab.campaign.procedure import Subject
    from drivelab.campaign.protocol_page import Entry
    from drivelab.plan.grammar import Protocol

CLASSES = ("enterprise", "client")
CAPACITY, WRITE_MIB_S = "1TB", 2000
"""Capacity and speed of the imagined drive, if no drive of the sheet is named."""


def add_parser(commands: Any) -> None:
    """Register `protocol` with its actions."""
    top = commands.add_parser("protocol", help="list, show and check protocols")
    actions = top.add_subparsers(title="actions", metavar="ACTION", required=True)

    parser = actions.add_parser("list", help="list the protocols, with the time and bytes they take")
    _add_drive(parser)
    parser.flag("--json", "print the list as JSON; times in seconds, volumes in bytes")
    parser.set_defaults(handler=_list)

    parser = actions.add_parser(
        "show",
        help="show what a protocol does: steps, rounds, cells, time and bytes written",
        description="Shows what a protocol does to a drive of the sheet, or to a drive of a given capacity and speed.",
    )
    name = parser.add_argument("protocol", metavar="NAME", help="name in config/protocols, or a file")
    completed_by(name, protocols)
    parser.add_argument("--scale", metavar="S", help="shorten the protocol by its scale S")
    parser.add_argument(
        "--class",
        dest="drive_class",
        choices=CLASSES,
        help="class of the drive (default: the usual one of the protocol)",
    )
    _add_drive(parser)
    parser.flag("--json", "print the same as JSON; times in seconds, volumes in bytes")
    parser.set_defaults(handler=_show)

    parser = actions.add_parser(
        "check", help="check that a file is a valid protocol, at full length and at every scale"
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="protocol file, such as config/protocols/pts-iops.yaml")
    parser.flag("--json", "print the result as JSON")
    parser.set_defaults(handler=_check)


def _add_drive(parser: argparse.ArgumentParser) -> None:
    drive = parser.add_argument(
        "--drive", metavar="D", help="a drive of config/drives.tsv; replaces the next two options"
    )
    completed_by(drive, drives)
    parser.add_argument(
        "--capacity", metavar="SIZE", help=f"capacity of the drive, such as 512GiB (default: {CAPACITY})"
    )
    parser.add_argument(
        "--write-mib-s",
        type=_positive,
        metavar="N",
        help=f"write throughput of the drive, MiB/s (default: {WRITE_MIB_S})",
    )
    words = "trace to replay: a name of traces/, or a file; repeatable"
    completed_by(parser.add_argument("--trace", metavar="T", action="append", default=[], help=words), traces)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return value


def _list(options: argparse.Namespace) -> int:
    from rich.text import Text

    from drivelab.campaign import protocol_page
    from drivelab.core.grouping import grouped
    from drivelab.plan.grammar import PROTOCOLS, load

    protocols = [load(path) for path in sorted((ROOT / PROTOCOLS).glob("*.yaml"))]
    words, subject = _subject(options)
    listed = protocol_page.entries(protocols, subject)
    if options.json:
        print_json([_mapping(entry) for entry in listed])
        return 0
    rows: list[Sequence[str | Text]] = []
    for family, members in grouped(listed, lambda entry: entry.family).items():
        rows.append([Text(family, style="bold")])
        for entry in members:
            name = f"{'*' if entry.start else ' '} {entry.name}"
            title = f"{entry.title} (does not fit this drive)" if entry.unfit else entry.title
            rows.append([name, entry.time, entry.written, title])
        rows.append([""])
    print_table(("protocol", "time", "written", ""), rows, ("time", "written"))
    print(f"* start here. Time and upper bound of the bytes written, conditioning included, for {words}; "
          "--drive chooses another. What a trace or an application adds (+ trace) is not known. "
          "'drivelab protocol show NAME' explains one.")  # fmt: skip
    return 0


def _mapping(entry: Entry) -> dict[str, Any]:
    names = ("family", "name", "title", "source", "start", "unfit")
    span = None if entry.takes is None or entry.takes.estimate is None else asdict(entry.takes.estimate)
    return {**{name: getattr(entry, name) for name in names}, "takes": span, "takes_more": bool(entry.more)}


def _show(options: argparse.Namespace) -> int:
    from drivelab.campaign import protocol_page
    from drivelab.plan.grammar import resolve

    protocol = _protocol(options.protocol)
    drive_class = options.drive_class or protocol.usual_class
    resolved = resolve(protocol, drive_class, options.scale, {}, "--scale")
    description, subject = _subject(options)
    if options.json:
        print_json(protocol_page.as_mapping(protocol, resolved, subject, drive_class, options.scale))
    else:
        print(protocol_page.text(protocol, resolved, description, subject, drive_class, options.scale), end="")
    return 0


def _check(options: argparse.Namespace) -> int:
    from drivelab.plan.grammar import load, resolve

    protocol = load(options.file)
    scales = [None, *protocol.body.get("scale", {})]
    measurements = 0
    for drive_class in CLASSES:
        for scale in scales:
            measurements = len(resolve(protocol, drive_class, scale, {}, str(options.file)))
    if options.json:
        print_json({"file": str(options.file), "protocol": protocol.name, "measurements": measurements,
                    "scales": [scale for scale in scales if scale]})  # fmt: skip
        return 0
    names = ", ".join(scale or "full length" for scale in scales)
    print(f"{options.file}: a valid protocol, {counted(measurements, 'measurement')} per drive, at {names}")
    return 0


def _protocol(name: str) -> Protocol:
    from drivelab.plan.grammar import PROTOCOLS, load, protocol_path

    if name.endswith(".yaml"):
        return load(Path(name))
    return load(protocol_path(name, folder=ROOT / PROTOCOLS))


def _subject(options: argparse.Namespace) -> tuple[str, Subject]:
    """Return the drive as a description and as numbers."""
    from drivelab.campaign import protocol_page as protocol_subject

    traces: tuple[Trace, ...] = tuple(protocol_subject.trace(name) for name in options.trace)
    if options.drive is None:
        return protocol_subject.imagined(options.capacity or CAPACITY, options.write_mib_s or WRITE_MIB_S, traces)
    if options.capacity is not None or options.write_mib_s is not None:
        raise UserError("--drive sets capacity and speed; drop --capacity and --write-mib-s, or drop --drive")
    return protocol_subject.of_sheet(options.drive, traces)
