"""`drivelab protocol`: what there is, what one does to a drive, and whether a file is one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.config.schema import ROOT
from drivelab.errors import UserError

if TYPE_CHECKING:
    from drivelab.protocol.grammar import Protocol
    from drivelab.stages.estimate import Trace
    from drivelab.stages.procedure import Subject

CLASSES = ("enterprise", "client")
CAPACITY, WRITE_MIB_S = "1TB", 2000
"""Of a drive that is imagined."""


def add_parser(commands: Any) -> None:
    """Register `protocol` with its actions."""
    top = commands.add_parser("protocol", help="list, show and check protocols")
    actions = top.add_subparsers(title="actions", metavar="ACTION", required=True)

    one = actions.add_parser("list", help="the protocols of config/protocols")
    one.add_argument("--markdown", action="store_true", help="as the index of docs/protocols")
    one.set_defaults(handler=_list)

    one = actions.add_parser(
        "show",
        help="what a protocol does: steps, rounds, cells, time and bytes written",
        description="Shows what a protocol does to a drive: one of the sheet, or one of a capacity and speed.",
    )
    one.add_argument("protocol", metavar="NAME", help="name in config/protocols, or a file")
    one.add_argument("--scale", metavar="S", help="shortened as its scale S says")
    one.add_argument("--class", dest="drive_class", choices=CLASSES, default=CLASSES[0], help="(default: %(default)s)")
    one.add_argument("--drive", metavar="D", help="a drive of config/drives.tsv, in the place of the next two options")
    one.add_argument("--capacity", metavar="SIZE", help=f"of the drive, such as 512GiB (default: {CAPACITY})")
    one.add_argument("--write-mib-s", type=_positive, metavar="N", help=f"it writes (default: {WRITE_MIB_S})")
    one.add_argument("--trace", metavar="T", action="append", default=[], help="trace of traces/, or a file, to replay")
    one.add_argument("--markdown", action="store_true", help="as its page of docs/protocols")
    one.set_defaults(handler=_show)

    one = actions.add_parser("check", help="whether a file is a protocol, at full length and at all its scales")
    one.add_argument("file", type=Path, metavar="FILE", help="a protocol, such as config/protocols/pts-iops.yaml")
    one.set_defaults(handler=_check)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is no number above 0")
    return value


def _list(options: argparse.Namespace) -> int:
    from drivelab.protocol.grammar import load
    from drivelab.stages import protocol_page
    from drivelab.stages.planning import PROTOCOLS

    found = [load(path) for path in sorted((ROOT / PROTOCOLS).glob("*.yaml"))]
    if options.markdown:
        print(protocol_page.index(found), end="")
        return 0
    width = max(len(one.name) for one in found)
    for one in found:
        print(f"{one.name:{width}}  {one.body['title']}")
    return 0


def _show(options: argparse.Namespace) -> int:
    from drivelab.protocol.grammar import resolve
    from drivelab.stages import protocol_page

    protocol = _protocol(options.protocol)
    resolved = resolve(protocol, options.drive_class, options.scale, {}, "--scale")
    words, subject = _subject(options)
    if options.markdown:
        print(protocol_page.page(protocol, words, subject), end="")
    else:
        print(protocol_page.text(protocol, resolved, words, subject, options.drive_class, options.scale), end="")
    return 0


def _check(options: argparse.Namespace) -> int:
    from drivelab.protocol.grammar import load, resolve

    protocol = load(options.file)
    scales = [None, *protocol.body.get("scale", {})]
    measurements = 0
    for drive_class in CLASSES:
        for scale in scales:
            measurements = len(resolve(protocol, drive_class, scale, {}, str(options.file)))
    names = ", ".join(scale or "full length" for scale in scales)
    print(f"{options.file}: is a protocol of {measurements} {'measurement' if measurements == 1 else 'measurements'} "
          f"a drive, at {names}")  # fmt: skip
    return 0


def _protocol(name: str) -> Protocol:
    from drivelab.protocol.grammar import load
    from drivelab.stages.planning import PROTOCOLS

    if name.endswith(".yaml"):
        return load(Path(name))
    path = ROOT / PROTOCOLS / f"{name}.yaml"
    if "/" in name or not path.exists():
        raise UserError(f"there is no protocol '{name}'; './drivelab protocol list' names them")
    return load(path)


def _subject(options: argparse.Namespace) -> tuple[str, Subject]:
    """The drive in words and numbers."""
    from drivelab.stages import protocol_subject

    traces: tuple[Trace, ...] = tuple(protocol_subject.trace(name) for name in options.trace)
    if options.drive is None:
        return protocol_subject.imagined(options.capacity or CAPACITY, options.write_mib_s or WRITE_MIB_S, traces)
    if options.capacity is not None or options.write_mib_s is not None:
        raise UserError("--drive knows its own capacity and speed; leave --capacity and --write-mib-s out, or --drive")
    return protocol_subject.of_sheet(options.drive, traces)
