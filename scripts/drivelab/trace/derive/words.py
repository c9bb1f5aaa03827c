"""Describe a derivation in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drivelab.trace.derive.values import show_ns
from drivelab.units import format_amount


def sentences(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences on an entry of `derived`: what was removed, what is unknown."""
    yield from {"cut": _cut, "drop-idle": _drop_idle, "filter": _filter, "merge": _merge}[entry["step"]](entry)
    if entry.get("dispatches_cut_apart"):
        yield f"kept in part only: {many(entry['dispatches_cut_apart'], 'dispatch')} of merged requests"
    for source in entry.get("sources", [entry.get("source", {})]):
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


def _merge(entry: Mapping[str, Any]) -> Iterator[str]:
    for source in entry["sources"]:
        moved = [f"starting at {show_ns(source['shift_ns'])}"]
        moved += [f"{format_amount(source['shift_bytes'])} further on the device"] if source["shift_bytes"] else []
        yield f"{many(source['requests'], 'request')} of {source['file']}, {', '.join(moved)}"
    if entry["different_devices_share_offsets"]:
        yield "the traces are of different devices but share offsets; --place side-by-side separates them"
