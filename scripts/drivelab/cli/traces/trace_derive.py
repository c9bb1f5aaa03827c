"""`drivelab trace cut`, `drop-idle`, `filter`, `issue-times`, `synthesise`: derive traces."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.core.errors import UserError

if TYPE_CHECKING:
    from drivelab.trace.derive.output import Step

_TIME = "time since the start of the trace, such as 1.5s, 200ms or 3min"


def add_actions(actions: Any) -> None:
    """Register the actions with the sub-parsers of `drivelab trace`."""
    action = _action(
        actions,
        "cut",
        _cut,
        "keep the requests of a time span",
        "Keeps the requests queued at or after one time and before another. Times then count from the first request.",
    )
    action.add_argument("--from", dest="begin", default="0", metavar="T", help=f"{_TIME} (default: 0)")
    action.add_argument("--to", dest="end", metavar="T", help=f"{_TIME} (default: end of the trace)")

    action = _action(
        actions,
        "drop-idle",
        _drop_idle,
        "shorten long idle gaps",
        "Shortens every longer gap in which no request is in flight. Later requests move forward.",
    )
    action.add_argument("--above", required=True, metavar="T", help="longest gap that is not changed, such as 100ms")
    action.add_argument("--keep", metavar="T", help="length of a shortened gap (default: the value of --above)")

    action = _action(
        actions,
        "filter",
        _filter,
        "keep the requests of an operation, a process, a part of the device or a volume, or repeat all",
        "Keeps the requests that match all given criteria. Dropped requests are counted. --times and --written repeat "
        "a trace instead: each repetition begins when the one before has ended, behind its device.",
    )
    action.add_argument(
        "--operation", action="append", default=[], metavar="A,B", help="read, write, flush, discard, write-zeroes"
    )
    action.add_argument(
        "--process", action="append", default=[], metavar="NAME", help="process that queued the request; repeatable"
    )
    action.add_argument(
        "--pid",
        action="append",
        default=[],
        type=int,
        metavar="N",
        help="process ID that queued the request; repeatable",
    )
    action.add_argument(
        "--range", metavar="FROM..TO", help="range of the device that the request touches, such as 0..1GiB"
    )
    action.add_argument("--volume", metavar="NAME", help="volume of a trace of several; alone, and keeps all times")
    action.add_argument("--not", dest="inverted", action="store_true", help="keep the requests that do not match")
    action.add_argument("--times", type=int, metavar="N", help="repeat the trace N times; alone")
    action.add_argument("--written", metavar="AMOUNT", help="repeat it until it writes as much, such as 28GB; alone")

    _action(
        actions,
        "issue-times",
        _issue_times,
        "let requests begin when they were issued to the drive",
        "Replaces the time at which a request was queued by the time at which it was issued to the drive.",
    )

    action = actions.add_parser(
        "synthesise",
        help="write a synthetic equivalent of a trace, as a protocol",
        description="Writes a protocol whose cells are the trace's main I/O streams. See docs/traces.md.",
    )
    action.add_argument("trace", metavar="TRACE", help="trace in Parquet, or a name of the catalogue in traces/")
    action.add_argument("-o", "--output", type=Path, required=True, metavar="PROTOCOL.yaml", help="protocol to write")
    action.add_argument(
        "--streams", type=int, default=9, metavar="N", help="number of streams, the most frequent first (default: 9)"
    )
    action.add_argument("--name", help="name of the protocol (default: that of the file)")
    action.add_argument(
        "--block",
        default="512B",
        metavar="SIZE",
        help="round request sizes up to multiples of SIZE, such as the logical block of the drives (default: 512B)",
    )
    action.add_argument("--json", action="store_true", help="print the report as JSON")
    action.set_defaults(handler=_synthesise)


def _action(actions: Any, name: str, handler: Any, title: str, description: str) -> Any:
    action = actions.add_parser(name, help=title, description=description)
    action.add_argument("trace", metavar="TRACE", help="trace in Parquet, or a name of the catalogue in traces/")
    action.add_argument("-o", "--output", type=Path, required=True, metavar="OUT.parquet", help="trace to write")
    action.add_argument("--json", action="store_true", help="print the report as JSON")
    action.set_defaults(handler=handler)
    return action


def _path(text: str) -> Path:
    from drivelab.trace import trace_catalogue

    return trace_catalogue.locate(text)


def _cut(options: argparse.Namespace) -> int:
    from drivelab.trace.derive.choice import time_ns
    from drivelab.trace.derive.cut import Cut

    end = None if options.end is None else time_ns(options.end)
    return _derive(options, Cut(time_ns(options.begin), end))


def _drop_idle(options: argparse.Namespace) -> int:
    from drivelab.trace.derive.choice import time_ns
    from drivelab.trace.derive.cut import DropIdle

    keep = None if options.keep is None else time_ns(options.keep)
    return _derive(options, DropIdle(time_ns(options.above), keep))


def _filter(options: argparse.Namespace) -> int:
    from drivelab.core.units import parse_amount
    from drivelab.trace.derive.choice import Criteria, Filter, byte_range, operations
    from drivelab.trace.derive.one_volume import one_volume
    from drivelab.trace.derive.repeat import repeat

    chosen = options.operation or options.process or options.pid or options.range or options.inverted
    if options.times is not None or options.written is not None:
        if chosen or options.volume is not None:
            raise UserError("--times and --written: take no criterion; filter first, then repeat the result")
        amount = None if options.written is None else round(parse_amount(options.written))
        return _show(options, repeat(_path(options.trace), options.output, times=options.times, written_bytes=amount))
    if options.volume is not None:
        if chosen:
            raise UserError("--volume: takes no other criterion; separate the volume first, then filter the result")
        return _show(options, one_volume(_path(options.trace), options.output, options.volume))
    criteria = Criteria(
        operations=operations(options.operation),
        processes=tuple(dict.fromkeys(options.process)),
        pids=tuple(dict.fromkeys(options.pid)),
        range_bytes=None if options.range is None else byte_range(options.range),
    )
    return _derive(options, Filter(criteria, inverted=options.inverted))


def _derive(options: argparse.Namespace, step: Step) -> int:
    from drivelab.trace.derive.output import derive

    return _show(options, derive(_path(options.trace), options.output, step))


def _issue_times(options: argparse.Namespace) -> int:
    from drivelab.trace.derive.issue_times import issue_times

    return _show(options, issue_times(_path(options.trace), options.output))


def _show(options: argparse.Namespace, entry: Mapping[str, Any]) -> int:
    from drivelab.trace.derive.limits import many, sentences

    if options.json:
        print(json.dumps(entry, indent=1))
        return 0
    print(f"{options.output}: {many(entry['requests'], 'request')}")
    for sentence in sentences(entry):
        print(f"  {sentence}")
    return 0


def _synthesise(options: argparse.Namespace) -> int:
    from drivelab.core.units import parse_size
    from drivelab.trace.derive.synthesise import synthesise

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
