"""Derive a trace from another: keep some of its requests, move their times, or repeat it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from drivelab.core.errors import UserError, suggestion
from drivelab.core.units import format_size
from drivelab.trace.parquet_schema import (
    BEGINS,
    ISSUE,
    OPERATIONS,
    REQUESTS,
    VOLUME,
    VOLUMES_KEY,
    TraceFile,
    TraceWriter,
    extent,
    open_trace,
    row_groups,
)
from drivelab.trace.records import refuse_source, writable
from drivelab.trace.statistics.batch import UNKNOWN, Batch, Flags, Ints, resolution_ns
from drivelab.trace.trace_catalogue import sha256_of

MOST_TIMES = 100_000
"""Most repetitions."""
_TIMES = ("queue_ns", "dispatch_ns", "complete_ns")
_OF_THE_SOURCE = (
    "requests", "events", "events_by_action", "passthrough", "other_devices", "device_flushes", "duration_s",
)  # fmt: skip
"""Counts of the source. A derived trace lists them under its source, not as its own."""
_IDENTITY = ("name", "title", "application", "first_event", "capacity_bytes", "lost", "unmatched", "malformed")
Facts = dict[str, Any]
Batches = Iterator[pa.RecordBatch]


def show_ns(time_ns: int) -> str:
    """Format a time exactly: `1.5 s`, `200 ms`, `3.25 us`."""
    for unit, factor in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if time_ns >= factor or not time_ns:
            whole, rest = divmod(time_ns, factor)
            digits = f"{rest:0{len(str(factor)) - 1}}".rstrip("0")
            return f"{whole}.{digits} {unit}" if digits else f"{whole} {unit}"
    return f"{time_ns} ns"


@dataclass(frozen=True, kw_only=True)
class Filter:
    """What to keep and change, in this order; a request must match one value of each given criterion."""

    volume: str | None = None
    """Volume of a trace of several; all times stay, so that volumes of one trace keep its time base."""
    issue_times: bool = False
    """Requests begin when they were issued to the drive; one without a dispatch keeps its queue time."""
    from_ns: int = 0
    """Keep requests queued at or after this time, whole; times count from it."""
    to_ns: int | None = None
    """Keep requests queued before this time."""
    operations: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()
    range_bytes: tuple[int, int | None] | None = None
    """First byte and the byte after the last. A request matches if it touches the range; a flush never does."""
    inverted: bool = False
    """Keep the requests that do not match the four criteria."""
    idle_above_ns: int | None = None
    """Shorten longer gaps, in which nothing is in flight, to `idle_keep_ns`; later requests move up."""
    idle_keep_ns: int | None = None
    times: int | None = None
    """Repeat the trace, without any other change."""
    written_bytes: int | None = None
    """Repeat the trace until it writes as much."""

    @property
    def criteria(self) -> dict[str, tuple[Any, ...]]:
        """Wanted values by column."""
        return {"operation": self.operations, "process": self.processes, "pid": self.pids}

    @property
    def steps(self) -> list[str]:
        """Names of the changes; raises UserError for contradictory ones and for none."""
        chosen = any(self.criteria.values()) or self.range_bytes is not None
        if self.inverted and not chosen:
            raise UserError("no filter criterion; give an operation, a process, a pid or a range")
        if self.to_ns is not None and self.from_ns >= self.to_ns:
            raise UserError(
                f"from {show_ns(self.from_ns)} to {show_ns(self.to_ns)} is empty; make 'to' later than 'from'"
            )
        above_ns, keep_ns = self.idle_above_ns or 0, self.idle_keep_ns or 0
        if keep_ns > above_ns:
            raise UserError(f"{show_ns(keep_ns)} would lengthen some gaps above {show_ns(above_ns)}; keep less")
        repeated = self.times is not None or self.written_bytes is not None
        steps = {
            "volume": self.volume is not None,
            "issue-times": self.issue_times,
            "cut": self.from_ns > 0 or self.to_ns is not None,
            "filter": chosen,
            "drop-idle": self.idle_above_ns is not None,
            "repeat": repeated,
        }
        used = [name for name, wanted in steps.items() if wanted]
        if not used:
            raise UserError("nothing to change; give a criterion, a time span, or a number of repetitions")
        if repeated and (len(used) > 1 or (self.times is not None and self.written_bytes is not None)):
            raise UserError("a repetition takes --times or --written alone; filter first, then repeat the result")
        return used


def filter_trace(source: Path, output: Path, chosen: Filter) -> Facts:
    """Derive a trace from another in bounded memory; return the entry of `derived`.

    Raises UserError and writes no output when the source is not a trace or is damaged, the output is the source or
    cannot be written, the filter is contradictory or does not fit the trace, or no request is left.
    """
    steps = chosen.steps
    refuse_source(output, [source])
    with open_trace(source, several=chosen.volume is not None) as trace:
        facts: Facts = {}
        changes: Facts = {}
        batches = _changed(trace, source, chosen, facts, changes)
        with writable(output), TraceWriter(output) as writer:
            for table in row_groups(batches):
                # Encode again, or names of removed processes would stay in the file.
                names = table["process"].combine_chunks().dictionary_decode().dictionary_encode()
                writer.write(table.set_column(table.schema.get_field_index("process"), "process", names))
            if not writer.rows:
                raise UserError(f"{source}: no request is left: {_why_none(facts)}; no file was written")
            known = {key: trace.provenance[key] for key in (*_IDENTITY, *_OF_THE_SOURCE) if key in trace.provenance}
            known |= {"file": source.name, "sha256": sha256_of(source), "requests": trace.rows}
            entry = {"step": ", ".join(steps), **facts, "requests": writer.rows, "source": known}
            kept = {key: value for key, value in trace.provenance.items() if key not in ("format", *_OF_THE_SOURCE)}
            # Lost and unmatched events stay listed: they may belong to the part that is left.
            about = {**kept, **changes, "derived": [*trace.provenance.get("derived", []), entry]}
            writer.finish({key: value for key, value in about.items() if value is not None})
    return entry


def _why_none(facts: Mapping[str, Any]) -> str:
    absent = [name for name, count in facts.get("found", {}).items() if not count]
    if absent:
        return f"it has no request of {', '.join(absent)}"
    if "last_queued_ns" in facts:
        return f"none was queued between the given times, and the last at {show_ns(facts['last_queued_ns'])}"
    return "none matches all criteria" if "found" in facts else "the trace has no request"


def _changed(trace: TraceFile, source: Path, chosen: Filter, facts: Facts, changes: Facts) -> Batches:
    """Return the changed requests; `facts` and provenance `changes` are complete when all have been read.

    Raises UserError, also while reading, when the filter does not fit the trace.
    """
    steps = chosen.steps
    if "repeat" in steps:
        return _repeated(trace, source, chosen, facts, changes)
    batches = _ordered(trace.batches(), source)
    if chosen.volume is not None:
        batches = _of_volume(batches, trace, source, chosen.volume, facts, changes)
    if chosen.issue_times:
        batches = _issued(batches, trace, source, facts, changes)
    if "cut" in steps:
        batches = _cut(batches, chosen, facts)
        changes |= _moved_origin(trace.provenance, chosen.from_ns)
    if "filter" in steps:
        batches = _matching(batches, chosen, facts)
        if steps == ["filter"]:  # it does not change the application's duration
            changes["duration_s"] = trace.provenance.get("duration_s")
    if "drop-idle" in steps:
        resolution = resolution_ns(trace.provenance)
        if resolution > 1 and (chosen.idle_above_ns or 0) < resolution:
            raise UserError(
                f"{source}: its times have a resolution of {show_ns(resolution)}, so shorter gaps are unknown; "
                "give a longer limit"
            )
        batches = _without_idle(batches, chosen, facts)
    return batches


def _ordered(batches: Iterable[pa.RecordBatch], source: Path) -> Batches:
    """Yield non-empty batches; raise UserError if rows are not in `queue_ns` order."""
    last = np.iinfo(np.int64).min
    for batch in batches:
        if not batch.num_rows:
            continue
        times = batch["queue_ns"].to_numpy()
        if times[0] < last or (np.diff(times) < 0).any():
            raise UserError(
                f"{source}: its requests are not in the order in which they were queued; decode or import it again"
            )
        last = times[-1]
        yield batch


def _added(requests: pa.RecordBatch, names: Iterable[str], by: int | Ints) -> pa.RecordBatch:
    """Add one number, or an array of shape (rows,), to columns; null stays null."""
    amount = pa.scalar(by, pa.int64()) if isinstance(by, int) else pa.array(by, pa.int64())
    for name in names:
        place = requests.schema.get_field_index(name)
        column = pc.add_checked(requests.column(place), amount)
        requests = requests.set_column(place, requests.schema.field(place), column)
    return requests


def _of_volume(batches: Batches, trace: TraceFile, source: Path, volume: str, facts: Facts, changes: Facts) -> Batches:
    if volume not in trace.volumes:
        has = suggestion(volume, list(trace.volumes)) if trace.volumes else "it has one volume, without a name"
        raise UserError(f"{source}: has no volume '{volume}'; {has}")
    facts["volume"] = volume
    changes |= {VOLUMES_KEY: None, "volume": volume}
    facts["other_volumes"] = 0
    for batch in batches:
        kept = batch.filter(pc.equal(batch[VOLUME.name].cast(pa.string()), volume)).drop_columns([VOLUME.name])
        facts["other_volumes"] += batch.num_rows - kept.num_rows
        if kept.num_rows:
            yield kept


def _issued(batches: Batches, trace: TraceFile, source: Path, facts: Facts, changes: Facts) -> Batches:
    """Replace queue times by dispatch times, and sort.

    No request is issued before it is queued, so rows up to the next batch's first queue time are in their final order.
    Merged requests then begin together, a split request with its first piece.
    """
    if trace.provenance.get(BEGINS) == ISSUE:
        raise UserError(f"{source}: its requests already begin when they were issued; nothing to change")
    changes[BEGINS] = ISSUE
    facts["without_dispatch"] = rows = 0
    waiting = REQUESTS.empty_table()
    for batch in batches:
        rows += batch.num_rows
        facts["without_dispatch"] += batch["dispatch_ns"].null_count
        due = pc.less(waiting["queue_ns"], batch["queue_ns"][0])
        yield from _parts(waiting.filter(due))
        # A dispatch before the queueing contradicts it, so the queue time stays. Null is skipped.
        begins = pc.max_element_wise(batch["dispatch_ns"], batch["queue_ns"])
        moved = batch.set_column(REQUESTS.get_field_index("queue_ns"), REQUESTS.field("queue_ns"), begins)
        waiting = pa.concat_tables([waiting.filter(pc.invert(due)), pa.Table.from_batches([moved])])
        waiting = waiting.unify_dictionaries().sort_by("queue_ns")
    if facts["without_dispatch"] == rows:
        raise UserError(f"{source}: has no dispatches, so when its requests were issued is unknown")
    yield from _parts(waiting)


def _parts(table: pa.Table) -> Batches:
    return (batch for batch in table.combine_chunks().to_batches() if batch.num_rows)


def _cut(batches: Batches, chosen: Filter, facts: Facts) -> Batches:
    names = ("dropped_before", "dropped_after", "missing_in_flight", "dropped_without_completion", "in_flight_at_end")
    facts |= {"from_ns": chosen.from_ns, "to_ns": chosen.to_ns, **dict.fromkeys(names, 0)}
    to_ns = np.iinfo(np.int64).max if chosen.to_ns is None else chosen.to_ns
    for requests in batches:
        batch = Batch(requests)
        complete_ns = batch.ints("complete_ns")
        before, after = batch.queue_ns < chosen.from_ns, batch.queue_ns >= to_ns
        masks = (
            before,
            after,
            before & (complete_ns > chosen.from_ns),
            before & (complete_ns == UNKNOWN),
            ~before & ~after & (complete_ns > to_ns),
        )
        for name, mask in zip(names, masks, strict=True):
            facts[name] += int(mask.sum())
        facts["last_queued_ns"] = int(batch.queue_ns[-1])
        kept = requests.filter(pa.array(~before & ~after))
        if kept.num_rows:
            yield _added(kept, _TIMES, -chosen.from_ns)


def _moved_origin(provenance: Mapping[str, Any], from_ns: int) -> Facts:
    """Return the date of the first event after a cut; None if idle time was removed before, or it is no date."""
    begin = provenance.get("first_event")
    if not begin or not from_ns:
        return {}
    if any(step.get("removed_ns") for step in provenance.get("derived", [])):
        return {"first_event": None}
    try:
        moment = pd.to_datetime(str(begin), utc=True).as_unit("ns")
        return {"first_event": (moment + pd.Timedelta(from_ns, "ns")).isoformat()}
    except ValueError:
        return {"first_event": None}


def _matching(batches: Batches, chosen: Filter, facts: Facts) -> Batches:
    given: Facts = {name: list(values) for name, values in chosen.criteria.items() if values}
    if chosen.range_bytes is not None:
        low, high = chosen.range_bytes
        given["range"] = f"{format_size(low)}.." + ("" if high is None else format_size(high))
    found = Counter({f"{name} {value}": 0 for name, values in chosen.criteria.items() for value in values})
    dropped_requests, dropped_bytes = (np.zeros(len(OPERATIONS), np.int64) for _ in range(2))
    for requests in batches:
        batch = Batch(requests)
        kept = _matches(batch, requests, chosen, found) ^ chosen.inverted
        dropped = batch.operation[~kept]
        dropped_requests += np.bincount(dropped, minlength=len(OPERATIONS))
        np.add.at(dropped_bytes, dropped, batch.length_bytes[~kept])
        if kept.any():
            yield requests.filter(pa.array(kept))
    counts = zip(OPERATIONS, dropped_requests.tolist(), dropped_bytes.tolist(), strict=True)
    facts |= {**given, "not": chosen.inverted, "found": dict(found)}
    facts["dropped"] = {name: {"requests": number, "bytes": size} for name, number, size in counts if number}


def _matches(batch: Batch, requests: pa.RecordBatch, chosen: Filter, found: Counter[str]) -> Flags:
    """Return which requests match all criteria; count those of each wanted value alone in `found`."""
    matches = np.ones(batch.rows, np.bool_)
    for name, values in chosen.criteria.items():
        column = requests[name] if name == "pid" else requests[name].cast(pa.string())
        any_value = np.zeros(batch.rows, np.bool_)
        for value in values:
            mask = pc.equal(column, value).to_numpy(zero_copy_only=False)
            found[f"{name} {value}"] += int(mask.sum())
            any_value |= mask
        matches &= any_value if values else True
    if chosen.range_bytes is not None:
        low, high = chosen.range_bytes
        matches &= (batch.length_bytes > 0) & (batch.end_bytes > low)
        if high is not None:
            matches &= batch.offset_bytes < high
    return matches


def _without_idle(batches: Batches, chosen: Filter, facts: Facts) -> Batches:
    """Shorten gaps, from the start of the trace.

    A request without a completion ends at its last known event, so in a trace without completions a gap is a time
    without arrivals. A gap never lies within a request, so latencies and overlaps do not change.
    """
    above_ns = chosen.idle_above_ns or 0
    keep_ns = above_ns if chosen.idle_keep_ns is None else chosen.idle_keep_ns
    reach = removed = longest = gaps = rows = unknown = 0
    for requests in batches:
        batch = Batch(requests)
        complete_ns = batch.ints("complete_ns")
        end_ns = np.maximum(np.maximum(batch.queue_ns, batch.ints("dispatch_ns")), complete_ns)
        reach_ns = np.maximum.accumulate(np.concatenate([[reach], end_ns]))
        gap_ns = batch.queue_ns - reach_ns[:-1]
        long = gap_ns > above_ns
        shift_ns = removed + np.cumsum(np.where(long, gap_ns - keep_ns, 0))
        reach, removed = int(reach_ns[-1]), int(shift_ns[-1])
        gaps += int(long.sum())
        longest = max(longest, int(gap_ns[long].max(initial=0)))
        rows += batch.rows
        unknown += int((complete_ns == UNKNOWN).sum())
        yield _added(requests, _TIMES, -shift_ns)
    facts |= {
        "above_ns": above_ns,
        "keep_ns": keep_ns,
        "basis": "no arrival"
        if unknown == rows
        else "nothing known to be in flight"
        if unknown
        else "nothing in flight",
        "without_completion": unknown,
        "gaps": gaps,
        "removed_ns": removed,
        "longest_gap_ns": longest,
    }


def _repeated(trace: TraceFile, source: Path, chosen: Filter, facts: Facts, changes: Facts) -> Batches:
    """Write the trace several times in succession.

    Each repetition begins when the one before has ended, and lies behind the device of the one before, so that it
    writes to other blocks. If the trace does not record its device's capacity, all lie at the same place.
    """
    duration_s, writes, _ = extent(source)
    times = chosen.times or 0
    if chosen.written_bytes is not None:
        if not writes:
            raise UserError(f"{source}: writes nothing, so no number of repetitions writes more; give --times")
        times = -(-chosen.written_bytes // writes)
    if not 1 <= times <= MOST_TIMES:
        raise UserError(f"{source}: {times} repetitions are not possible; give 1 to {MOST_TIMES}")
    capacity = trace.provenance.get("capacity_bytes")
    ids = _dispatch_ids(trace, source, capacity)
    facts |= {"times": times, "shift_bytes": capacity or 0, "written_bytes": times * writes}
    changes |= {"capacity_bytes": capacity * times} if capacity else {}
    span_ns = round(duration_s * 1e9) + 1
    for number in range(times):
        for requests in _ordered(trace.batches(), source):
            moved = _added(_added(requests, _TIMES, number * span_ns), ["dispatch_id"], number * ids)
            if number and capacity:
                empty = requests["length_bytes"].to_numpy() == 0
                moved = _added(moved, ["offset_bytes"], np.where(empty, 0, number * capacity))
            yield moved


def _dispatch_ids(trace: TraceFile, source: Path, capacity: int | None) -> int:
    """Return how many dispatch numbers a repetition takes; raise UserError if a request lies beyond the device."""
    most = -1
    for requests in trace.batches(["queue_ns", "offset_bytes", "length_bytes", "dispatch_id"]):
        end_bytes = int(Batch(requests).end_bytes.max(initial=0))
        if capacity and end_bytes > capacity:
            raise UserError(
                f"{source}: a request ends at byte {end_bytes}, beyond the device's {capacity}; decode or import the "
                "trace again"
            )
        most = max(most, pc.max(requests["dispatch_id"]).as_py() or 0)
    return most + 1
