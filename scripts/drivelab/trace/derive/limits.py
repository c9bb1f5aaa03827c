"""Describe what a synthetic equivalent loses of its trace, with numbers."""

from __future__ import annotations

from collections.abc import Iterator

from drivelab.trace.derive.equivalent import Equivalent
from drivelab.trace.derive.words import many
from drivelab.units import format_amount, format_size


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
