"""Describe what a synthetic equivalent loses of its trace, with numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drivelab.core.units import format_amount, format_size
from drivelab.trace.derive.choice import show_ns
from drivelab.trace.derive.equivalent import Equivalent


def sentences(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences on an entry of `derived`: what was removed, what is unknown."""
    yield from {
        "cut": _cut,
        "drop-idle": _drop_idle,
        "filter": _filter,
        "repeat": _repeat,
        "issue-times": _issue_times,
        "volume": _volume,
    }[entry["step"]](entry)
    if entry.get("dispatches_cut_apart"):
        yield f"kept in part only: {many(entry['dispatches_cut_apart'], 'dispatch')} of merged requests"
    source = entry["source"]
    for key, title in (("lost", "LOSSY"), ("unmatched", "INCONSISTENT")):
        if source.get(key):
            counts = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in source[key].items())
            yield f"{title}, like its source {source['file']}: {counts}"


def many(count: int, noun: str) -> str:
    """`1 request`, `2 requests`, `2 dispatches`."""
    return f"{count} {noun}" + ("" if count == 1 else "es" if noun.endswith("ch") else "s")


def _cut(entry: Mapping[str, Any]) -> Iterator[str]:
    dropped = entry["dropped"]
    yield f"removed: {many(dropped['before'], 'request')} before the cut and {dropped['after']} after it"
    if entry["missing_in_flight"]:
        yield f"missing: {many(entry['missing_in_flight'], 'request')} in flight at the start of the cut"
    if entry["dropped_without_completion"]:
        count = entry["dropped_without_completion"]
        yield f"unknown: {many(count, 'request')} before the cut without a completion may have been in flight"
    if entry["in_flight_at_end"]:
        yield f"kept whole: {many(entry['in_flight_at_end'], 'request')} in flight at the end of the cut"


def _drop_idle(entry: Mapping[str, Any]) -> Iterator[str]:
    above = f"above {show_ns(entry['above_ns'])} ({entry['basis']})"
    if not entry["gaps"]:
        yield f"no gap {above}; times are unchanged"
        return
    yield (
        f"{many(entry['gaps'], 'gap')} {above} shortened to {show_ns(entry['keep_ns'])}: "
        f"{show_ns(entry['removed_ns'])} removed, longest gap {show_ns(entry['longest_gap_ns'])}"
    )
    if entry["without_completion"]:
        yield f"without a completion: {many(entry['without_completion'], 'request')}, ended at the last known event"


def _filter(entry: Mapping[str, Any]) -> Iterator[str]:
    dropped = ", ".join(
        f"{count['requests']} {operation} ({format_amount(count['bytes'])})"
        for operation, count in entry["dropped"].items()
    )
    yield f"removed: {dropped or 'nothing'}"
    for criterion, count in entry["found"].items():
        if not count:
            yield f"the trace has no request of {criterion}"
    if entry.get("across_the_edge"):
        yield f"across an edge of the range: {many(entry['across_the_edge'], 'request')}, counted as inside"


def _volume(entry: Mapping[str, Any]) -> Iterator[str]:
    yield f"left out: {many(entry['source']['requests'] - entry['requests'], 'request')} of other volumes"


def _repeat(entry: Mapping[str, Any]) -> Iterator[str]:
    where = "each behind the device of the one before" if entry["shift_bytes"] else "all at the same place"
    yield f"{entry['times']} times, {where}: {format_amount(entry['written_bytes'])} written"


def _issue_times(entry: Mapping[str, Any]) -> Iterator[str]:
    yield "requests begin when they were issued to the drive"
    if entry["without_dispatch"]:
        yield f"without a dispatch: {many(entry['without_dispatch'], 'request')}, which keep their queue times"


def limits(equivalent: Equivalent) -> Iterator[str]:
    """Yield a sentence for each property that this trace loses."""
    yield _arrivals(equivalent)
    yield (
        "order: the streams run one after another"
        + ("" if equivalent.both_share_pct is None else
           f"; in the trace reads and writes overlap for {_pct(equivalent.both_share_pct)} of the busy time")
    )  # fmt: skip
    yield _locality(equivalent)
    if equivalent.left_out_requests:
        yield (
            f"streams left out: {equivalent.left_out_streams} with {many(equivalent.left_out_requests, 'request')}, "
            f"{_pct(equivalent.left_out_pct)} of the reads and writes and "
            f"{_pct(100 * equivalent.left_out_bytes / equivalent.transfer_bytes)} of their bytes"
        )
    others = {name: count for name, count in equivalent.operations.items() if name not in ("read", "write") and count}
    marked = {"FUA": equivalent.fua, "preflush": equivalent.preflush}
    parts = [many(count, f"{name} request") for name, count in others.items()]
    parts += [f"the flag {name} of {count} writes" for name, count in marked.items() if count]
    if parts:
        yield f"flushes and other requests: {', '.join(parts)}"
    if equivalent.merged is None:
        yield "merging: the trace does not show which requests were merged before the drive"
    elif equivalent.merged:
        yield (
            f"merging: {equivalent.merged} requests reached the drive merged into others; the cells issue each alone"
        )
    empty = equivalent.operations["read"] + equivalent.operations["write"] - equivalent.transfers
    if empty:
        yield f"reads and writes of length 0: {empty}"
    if equivalent.rounded:
        yield f"sizes: {equivalent.rounded} requests rounded up to multiples of {format_size(equivalent.block_bytes)}"
    if equivalent.length_step_bytes > 1:
        yield f"sizes: counted in steps of {format_size(equivalent.length_step_bytes)}, as there are too many sizes"
    if equivalent.depth is None:
        yield "queue depth: 1 in every cell, as the trace has no completions"
    elif equivalent.without_completion:
        yield f"queue depth: {equivalent.without_completion} requests without a completion are not counted"


def _arrivals(equivalent: Equivalent) -> str:
    if not equivalent.duration_s:
        return "arrival times: the trace has none; a cell issues as fast as the drive completes"
    requests = sum(equivalent.operations.values())
    text = (
        f"arrival times: {requests} requests in {equivalent.duration_s:.4g} s, on average "
        f"{requests / equivalent.duration_s:.4g} per second; a cell issues as fast as the drive completes"
    )
    if equivalent.variation is not None:
        text += f". Bursts: interarrival times have a coefficient of variation of {equivalent.variation:.3g}"
    if equivalent.idle_share_pct is not None:
        text += f". Idle time: {_pct(equivalent.idle_share_pct)}"
    return text


def _locality(equivalent: Equivalent) -> str:
    footprint = format_amount(equivalent.footprint_bytes)
    span = format_amount(equivalent.high_bytes - equivalent.low_bytes)
    again = equivalent.transfer_bytes / equivalent.footprint_bytes
    where = (
        f"{equivalent.active_range_pct:g} % of the capacity from its start"
        if equivalent.capacity_bytes
        else "the whole drive, as the trace does not record its drive's capacity"
    )
    return (
        f"locality: the trace touched {footprint} (in blocks of {format_size(equivalent.footprint_block_bytes)}) "
        f"within {span}, each byte {again:.3g} times on average; the cells use {where}, random ones uniformly"
    )


def _pct(share_pct: float) -> str:
    return f"{share_pct:.3g} %"
