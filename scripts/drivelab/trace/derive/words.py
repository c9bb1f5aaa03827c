"""What a derivation did, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drivelab.trace.derive.values import show_ns
from drivelab.units import format_amount


def sentences(entry: Mapping[str, Any]) -> Iterator[str]:
    """Of an entry of `derived`: what was left out, and what the derived trace cannot tell."""
    yield from {"cut": _cut, "drop-idle": _drop_idle, "filter": _filter, "merge": _merge}[entry["step"]](entry)
    if entry.get("dispatches_cut_apart"):
        yield f"there in part only: {many(entry['dispatches_cut_apart'], 'dispatch')} of merged requests"
    for source in entry.get("sources", [entry.get("source", {})]):
        for key, title in (("lost", "LOSSY"), ("unmatched", "does not add up")):
            if source.get(key):
                counts = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in source[key].items())
                yield f"{title}, as {source['file']} is: {counts}"


def many(count: int, noun: str) -> str:
    """`1 request`, `2 requests`, `2 dispatches`."""
    return f"{count} {noun}" + ("" if count == 1 else "es" if noun.endswith("ch") else "s")


def _cut(entry: Mapping[str, Any]) -> Iterator[str]:
    dropped = entry["dropped"]
    yield f"left out: {many(dropped['before'], 'request')} before and {dropped['after']} after"
    if entry["missing_in_flight"]:
        yield f"missing: {many(entry['missing_in_flight'], 'request')} in flight when the cut begins"
    if entry["dropped_without_completion"]:
        count = entry["dropped_without_completion"]
        yield f"{count} of those before have no completion: whether they were still in flight is not known"
    if entry["in_flight_at_end"]:
        yield f"kept whole: {many(entry['in_flight_at_end'], 'request')} in flight when the cut ends"


def _drop_idle(entry: Mapping[str, Any]) -> Iterator[str]:
    above = f"above {show_ns(entry['above_ns'])} ({entry['basis']})"
    if not entry["gaps"]:
        yield f"no gap {above}; times are as they were"
        return
    yield (
        f"{many(entry['gaps'], 'gap')} {above} shortened to {show_ns(entry['keep_ns'])}: "
        f"{show_ns(entry['removed_ns'])} taken out, the longest gap was {show_ns(entry['longest_gap_ns'])}"
    )
    if entry["without_completion"]:
        yield f"without a completion: {many(entry['without_completion'], 'request')}, over when last heard of"


def _filter(entry: Mapping[str, Any]) -> Iterator[str]:
    dropped = ", ".join(
        f"{one['requests']} {operation} ({format_amount(one['bytes'])})" for operation, one in entry["dropped"].items()
    )
    yield f"left out: {dropped or 'nothing'}"
    for what, count in entry["found"].items():
        if not count:
            yield f"there is no request of {what}"
    if entry.get("across_the_edge"):
        yield f"across an edge of the range: {many(entry['across_the_edge'], 'request')}, counted as in it"


def _merge(entry: Mapping[str, Any]) -> Iterator[str]:
    for source in entry["sources"]:
        moved = [f"from {show_ns(source['shift_ns'])} on"]
        moved += [f"{format_amount(source['shift_bytes'])} further on the device"] if source["shift_bytes"] else []
        yield f"{many(source['requests'], 'request')} of {source['file']}, {', '.join(moved)}"
    if entry["different_devices_share_offsets"]:
        yield "they are of different devices and share one range of offsets; --place side-by-side keeps them apart"
