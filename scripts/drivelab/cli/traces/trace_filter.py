"""`drivelab trace filter`, `synthesise`: derive a trace or a protocol from a trace."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drivelab.cli.traces.action import TRACE, Answer, Argument, add_action, output
from drivelab.core.errors import UserError
from drivelab.core.units import counted, format_amount, parse_amount, parse_duration, parse_size

_ZERO = re.compile(r"\s*0+(\.0*)?\s*(us|ms|s|min|h|d)?\s*")
_TIME = "time since the start of the trace, such as 1.5s, 200ms or 3min"


def add_actions(actions: Any) -> None:
    """Register the actions with the sub-parsers of `drivelab trace`."""
    listed: dict[str, Any] = {"action": "append", "default": []}
    arguments: dict[str, Argument] = {
        "trace": TRACE,
        "--output": output("OUT.parquet", "trace to write"),
        "--from": {"dest": "begin", "default": "0", "metavar": "T", "help": f"{_TIME} (default: 0)"},
        "--to": {"dest": "end", "metavar": "T", "help": f"{_TIME} (default: end of the trace)"},
        "--operation": {**listed, "metavar": "A,B", "help": "read, write, flush, discard, write-zeroes"},
        "--process": {**listed, "metavar": "NAME", "help": "process that queued the request; repeatable"},
        "--pid": {**listed, "type": int, "metavar": "N", "help": "process ID that queued the request; repeatable"},
        "--range": {"metavar": "FROM..TO", "help": "range of the device that the request touches, such as 0..1GiB"},
        "--not": {"dest": "inverted", "action": "store_true", "help": "keep the requests that do not match"},
        "--idle-above": {"metavar": "T", "help": "shorten longer gaps in which no request is in flight, such as 100ms"},
        "--idle-keep": {"metavar": "T", "help": "length of a shortened gap (default: the value of --idle-above)"},
        "--times": {"type": int, "metavar": "N", "help": "repeat the trace N times; alone"},
        "--written": {"metavar": "AMOUNT", "help": "repeat it until it writes as much, such as 28GB; alone"},
    }
    more = (
        "Keeps the requests that are in the time span and match all given criteria, then shortens idle gaps. --times "
        "and --written repeat a trace instead: each repetition begins when the one before has ended, behind its "
        "device. docs/traces.md explains what a result cannot show."
    )
    words = "keep some requests of a trace, shorten its idle time, or repeat it"
    add_action(actions, "filter", _filter, words, arguments, more)
    streams = "number of streams, the most frequent first (default: 9)"
    block = "round request sizes up to multiples of SIZE, such as the logical block of the drives (default: 512B)"
    arguments = {
        "trace": TRACE,
        "--output": output("PROTOCOL.yaml", "protocol to write"),
        "--streams": {"type": int, "default": 9, "metavar": "N", "help": streams},
        "--block": {"default": "512B", "metavar": "SIZE", "help": block},
    }
    more = "Writes a protocol whose cells are the trace's main I/O streams. See docs/traces.md."
    words = "write a synthetic equivalent of a trace, as a protocol"
    add_action(actions, "synthesise", _synthesise, words, arguments, more)


def _filter(options: argparse.Namespace) -> Answer:
    from drivelab.trace import trace_catalogue
    from drivelab.trace.derive.filter import Filter, filter_trace

    if options.idle_keep is not None and options.idle_above is None:
        raise UserError("--idle-keep: give the longest gap that is not changed with --idle-above")
    chosen = Filter(
        from_ns=time_ns(options.begin),
        to_ns=None if options.end is None else time_ns(options.end),
        operations=operations(options.operation),
        processes=tuple(dict.fromkeys(options.process)),
        pids=tuple(dict.fromkeys(options.pid)),
        range_bytes=None if options.range is None else byte_range(options.range),
        inverted=options.inverted,
        idle_above_ns=None if options.idle_above is None else time_ns(options.idle_above),
        idle_keep_ns=None if options.idle_keep is None else time_ns(options.idle_keep),
        times=options.times,
        written_bytes=None if options.written is None else round(parse_amount(options.written)),
    )
    entry = filter_trace(trace_catalogue.locate(options.trace), options.output, chosen)
    return entry, [
        f"{options.output}: {counted(entry['requests'], 'request')}",
        *(f"  {sentence}" for sentence in _sentences(entry)),
    ]


def time_ns(text: str) -> int:
    """Parse a time such as `1.5s`, `200ms`, `3min` or `0` to ns; raise UserError."""
    return 0 if _ZERO.fullmatch(text) else round(parse_duration(text) * 1e9)


def byte_range(text: str) -> tuple[int, int | None]:
    """Parse `FROM..TO` to the first byte and the byte after the last.

    FROM and TO are sizes or numbers of bytes; either may be omitted. Raises UserError for other texts and empty ranges.
    """
    first, dots, last = text.partition("..")
    if not dots or not (first.strip() or last.strip()):
        raise UserError(f"range '{text}' is not FROM..TO; write it like 0..1GiB, 4096.. or ..512MiB")
    ends = [
        None if not end else int(end) if end.isdecimal() else parse_size(end) for end in (first.strip(), last.strip())
    ]
    low, high = ends[0] or 0, ends[1]
    if high is not None and high <= low:
        raise UserError(f"range '{text}' is empty: it ends before it begins; give a larger end")
    return low, high


def operations(texts: Sequence[str]) -> tuple[str, ...]:
    """Parse lists such as `read,write`, each operation once; raise UserError."""
    from drivelab.trace.parquet_schema import OPERATIONS

    names = [name.strip() for text in texts for name in text.split(",")]
    for name in names:
        if name not in OPERATIONS:
            raise UserError(f"operation '{name}' is unknown; choose from {', '.join(OPERATIONS)}")
    return tuple(dict.fromkeys(names))


def _sentences(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences on an entry of `derived`: what was removed, what is unknown."""
    from drivelab.trace.derive.filter import show_ns

    def requests(name: str) -> str:
        return counted(entry[name], "request")

    if "from_ns" in entry:
        yield f"removed: {requests('dropped_before')} before the cut and {entry['dropped_after']} after it"
        for name, text in (
            ("missing_in_flight", "missing: {} in flight at the start of the cut"),
            ("dropped_without_completion", "unknown: {} before the cut without a completion may have been in flight"),
            ("in_flight_at_end", "kept whole: {} in flight at the end of the cut"),
        ):
            if entry[name]:
                yield text.format(requests(name))
    if "found" in entry:
        dropped = entry["dropped"].items()
        kinds = [f"{number['requests']} {name} ({format_amount(number['bytes'])})" for name, number in dropped]
        yield f"removed: {', '.join(kinds) or 'nothing'}"
        yield from (f"the trace has no request of {wanted}" for wanted, count in entry["found"].items() if not count)
    if "gaps" in entry:
        above = f"above {show_ns(entry['above_ns'])} ({entry['basis']})"
        if not entry["gaps"]:
            yield f"no gap {above}; times are unchanged"
        else:
            yield (
                f"{counted(entry['gaps'], 'gap')} {above} shortened to {show_ns(entry['keep_ns'])}: "
                f"{show_ns(entry['removed_ns'])} removed, longest gap {show_ns(entry['longest_gap_ns'])}"
            )
        if entry["without_completion"]:
            yield f"without a completion: {requests('without_completion')}, ended at the last known event"
    if "times" in entry:
        where = "each behind the device of the one before" if entry["shift_bytes"] else "all at the same place"
        yield f"{entry['times']} times, {where}: {format_amount(entry['written_bytes'])} written"
    source = entry["source"]
    for key, title in (("lost", "LOSSY"), ("unmatched", "INCONSISTENT")):
        if source.get(key):
            counts = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in source[key].items())
            yield f"{title}, like its source {source['file']}: {counts}"


def _synthesise(options: argparse.Namespace) -> Answer:
    from drivelab.trace import trace_catalogue
    from drivelab.trace.derive.synthesise import synthesise

    source = trace_catalogue.locate(options.trace)
    report = synthesise(source, options.output, streams=options.streams, block_bytes=parse_size(options.block))
    lines = [
        f"{options.output}: protocol '{report['name']}', {len(report['streams'])} streams",
        f"  {'share':>7}  {'requests':>10}  {'depth':>5}  stream",
    ]
    for stream in report["streams"]:
        depth = "-" if stream["depth"] is None else f"{stream['depth']:.2f}"
        lines.append(f"  {stream['share_pct']:6.2f}%  {stream['requests']:10}  {depth:>5}  {stream['workload']}")
    return report, [*lines, "Lost properties of the trace:", *(f"  * {text}" for text in report["not_carried_over"])]
