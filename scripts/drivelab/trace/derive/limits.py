"""What a synthetic equivalent does not carry over from its trace, in sentences with numbers."""

from __future__ import annotations

from collections.abc import Iterator

from drivelab.trace.derive.equivalent import Equivalent
from drivelab.trace.derive.words import many
from drivelab.units import format_amount, format_size


def limits(found: Equivalent) -> Iterator[str]:
    """One sentence for each; without those that lose nothing of this trace."""
    yield _arrivals(found)
    yield (
        "order: the streams run one after another, each by itself"
        + ("" if found.both_share_pct is None else
           f"; in the trace reads and writes were in flight together for {_pct(found.both_share_pct)} of the busy time")
    )  # fmt: skip
    yield _locality(found)
    if found.left_out_requests:
        yield (
            f"streams left out: {found.left_out_streams} with {many(found.left_out_requests, 'request')}, "
            f"{_pct(found.left_out_pct)} of the reads and writes and "
            f"{_pct(100 * found.left_out_bytes / found.transfer_bytes)} of their bytes"
        )
    others = {name: count for name, count in found.operations.items() if name not in ("read", "write") and count}
    marked = {"FUA": found.fua, "preflush": found.preflush}
    parts = [many(count, f"{name} request") for name, count in others.items()]
    parts += [f"the flag {name} of {count} writes" for name, count in marked.items() if count]
    if parts:
        yield f"flushes and the like: {', '.join(parts)}"
    if found.merged is None:
        yield "merging: the trace does not know which requests reached the drive as a part of larger ones"
    elif found.merged:
        yield (
            f"merging: {found.merged} requests reached the drive as a part of larger ones; the cells issue each by "
            "itself"
        )
    empty = found.operations["read"] + found.operations["write"] - found.transfers
    if empty:
        yield f"reads and writes of no bytes: {empty}"
    if found.rounded:
        yield f"sizes: {found.rounded} requests were rounded up to multiples of {format_size(found.block_bytes)}"
    if found.length_step_bytes > 1:
        yield f"sizes: so many kinds that they were counted in steps of {format_size(found.length_step_bytes)}"
    if found.depth is None:
        yield "queue depth: the trace has no completions, so every cell has 1"
    elif found.without_completion:
        yield f"queue depth: {found.without_completion} requests without a completion are not counted in it"


def _arrivals(found: Equivalent) -> str:
    if not found.duration_s:
        return "arrival times: the trace has none; a cell issues as fast as the drive answers"
    requests = sum(found.operations.values())
    text = (
        f"arrival times: {requests} requests came in {found.duration_s:.4g} s, {requests / found.duration_s:.4g} a "
        "second on the mean; a cell issues as fast as the drive answers"
    )
    if found.variation is not None:
        text += f". Bursts: the times between arrivals vary by {found.variation:.3g} times their mean"
    if found.idle_share_pct is not None:
        text += f". Idle time: {_pct(found.idle_share_pct)}"
    return text


def _locality(found: Equivalent) -> str:
    footprint = format_amount(found.footprint_bytes)
    span = format_amount(found.high_bytes - found.low_bytes)
    again = found.transfer_bytes / found.footprint_bytes
    where = (
        f"{found.active_range_pct:g} % of the capacity from its start on"
        if found.capacity_bytes
        else "the whole drive, as the trace does not say how large its own was"
    )
    return (
        f"locality: the trace touched {footprint} (in blocks of {format_size(found.footprint_block_bytes)}) within "
        f"{span}, each byte {again:.3g} times on the mean; the cells use {where}, random ones evenly"
    )


def _pct(share_pct: float) -> str:
    return f"{share_pct:.3g} %"
