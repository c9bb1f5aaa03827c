"""`drivelab trace cut`, `drop-idle`, `filter`, `merge` and `synthesise`: traces and protocols from traces."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drivelab.trace.derive.step import Step

_TIME = "time after the beginning of the trace, such as 1.5s, 200ms or 3min"


def add_actions(actions: Any) -> None:
    """Register the actions with the sub-parsers of `drivelab trace`."""
    one = _action(
        actions,
        "cut",
        _cut,
        "the requests of a span of time",
        "Keeps the requests that were queued from one time on and before another; times then count from the first.",
    )
    one.add_argument("--from", dest="begin", default="0", metavar="T", help=f"{_TIME} (default: 0)")
    one.add_argument("--to", dest="end", metavar="T", help=f"{_TIME} (default: its end)")

    one = _action(
        actions,
        "drop-idle",
        _drop_idle,
        "shorten the times in which nothing is in flight",
        "Shortens every longer time in which nothing is in flight; all that comes later moves up.",
    )
    one.add_argument("--above", required=True, metavar="T", help="longest gap that stays as it is, such as 100ms")
    one.add_argument("--keep", metavar="T", help="what is left of a longer gap (default: as much as --above)")

    one = _action(
        actions,
        "filter",
        _filter,
        "the requests of an operation, a process or a part of the device",
        "Keeps the requests that suit all that is given. What was dropped is counted.",
    )
    one.add_argument(
        "--operation", action="append", default=[], metavar="A,B", help="read, write, flush, discard, write-zeroes"
    )
    one.add_argument("--process", action="append", default=[], metavar="NAME", help="who queued it; may be repeated")
    one.add_argument("--pid", action="append", default=[], type=int, metavar="N", help="may be repeated")
    one.add_argument("--range", metavar="FROM..TO", help="part of the device that it touches, such as 0..1GiB")
    one.add_argument("--not", dest="inverted", action="store_true", help="keep those that do not suit")

    one = _action(
        actions,
        "merge",
        _merge,
        "requests of several traces as one",
        "Puts the requests of several traces into one, in the order of time.",
        several=True,
    )
    one.add_argument(
        "--at",
        choices=["start", "wall-clock"],
        default="start",
        help="let all begin at once, or as far apart as they were made (default: start)",
    )
    one.add_argument(
        "--place",
        choices=["same", "side-by-side"],
        default="same",
        help="offsets as they are, or each behind the device of those before (default: same)",
    )

    one = actions.add_parser(
        "synthesise",
        help="a synthetic equivalent of a trace, as a protocol",
        description="Writes a protocol whose cells are the trace's main I/O streams. See docs/trace_derive.md.",
    )
    one.add_argument("trace", metavar="TRACE", help="trace in Parquet, or a name of the catalogue in traces/")
    one.add_argument(
        "-o", "--output", type=Path, required=True, metavar="PROTOCOL.yaml", help="the protocol that is made"
    )
    one.add_argument("--streams", type=int, default=9, metavar="N", help="the most frequent streams (default: 9)")
    one.add_argument("--name", help="name of the protocol (default: the file's)")
    one.add_argument(
        "--block",
        default="512B",
        metavar="SIZE",
        help="round request sizes up to multiples, such as the logical block of the drives to test (default: 512B)",
    )
    one.add_argument("--json", action="store_true", help="print what was found as JSON")
    one.set_defaults(handler=_synthesise)


def _action(actions: Any, name: str, handler: Any, title: str, description: str, *, several: bool = False) -> Any:
    one = actions.add_parser(name, help=title, description=description)
    many = {"dest": "traces", "nargs": "+"} if several else {"dest": "trace"}
    one.add_argument(**many, metavar="TRACE", help="trace in Parquet, or a name of the catalogue in traces/")
    one.add_argument("-o", "--output", type=Path, required=True, metavar="OUT.parquet", help="the trace that is made")
    one.add_argument("--json", action="store_true", help="print what was done as JSON")
    one.set_defaults(handler=handler)
    return one


def _path(text: str) -> Path:
    from drivelab.trace import catalogue

    return catalogue.locate(text)


def _cut(options: argparse.Namespace) -> int:
    from drivelab.trace.derive.cut import Cut
    from drivelab.trace.derive.values import time_ns

    end = None if options.end is None else time_ns(options.end)
    return _derive(options, Cut(time_ns(options.begin), end))


def _drop_idle(options: argparse.Namespace) -> int:
    from drivelab.trace.derive.idle import DropIdle
    from drivelab.trace.derive.values import time_ns

    keep = None if options.keep is None else time_ns(options.keep)
    return _derive(options, DropIdle(time_ns(options.above), keep))


def _filter(options: argparse.Namespace) -> int:
    from drivelab.trace.derive.choice import Criteria, Filter
    from drivelab.trace.derive.values import byte_range, operations

    criteria = Criteria(
        operations=operations(options.operation),
        processes=tuple(dict.fromkeys(options.process)),
        pids=tuple(dict.fromkeys(options.pid)),
        range_bytes=None if options.range is None else byte_range(options.range),
    )
    return _derive(options, Filter(criteria, inverted=options.inverted))


def _derive(options: argparse.Namespace, step: Step) -> int:
    from drivelab.trace.derive.step import derive

    return _show(options, derive(_path(options.trace), options.output, step))


def _merge(options: argparse.Namespace) -> int:
    from drivelab.trace.derive.merge import merge

    paths = [_path(text) for text in options.traces]
    return _show(options, merge(paths, options.output, at=options.at, place=options.place))


def _show(options: argparse.Namespace, entry: Mapping[str, Any]) -> int:
    from drivelab.trace.derive.words import many, sentences

    if options.json:
        print(json.dumps(entry, indent=1))
        return 0
    print(f"{options.output}: {many(entry['requests'], 'request')}")
    for sentence in sentences(entry):
        print(f"  {sentence}")
    return 0


def _synthesise(options: argparse.Namespace) -> int:
    from drivelab.trace.derive.synthesise import synthesise
    from drivelab.units import parse_size

    report = synthesise(
        _path(options.trace),
        options.output,
        streams=options.streams,
        name=options.name,
        block_bytes=parse_size(options.block),
    )
    if options.json:
        print(json.dumps(report.as_dict(), indent=1))
        return 0
    for line in report.lines():
        print(line)
    return 0
