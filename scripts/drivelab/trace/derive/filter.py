"""Derive a trace from another, a query each step: keep some of its requests, move their times, or repeat it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.core.errors import UserError
from drivelab.core.units import format_size
from drivelab.trace.parquet_schema import OPERATIONS, TIMES, TraceWriter, row_groups
from drivelab.trace.records import writable
from drivelab.trace.statistics.requests import Requests, opened
from drivelab.trace.trace_catalogue import sha256_of

MOST_TIMES = 100_000
"""Most repetitions."""
_LATEST_NS = 1 << 62
"""No trace has a later time."""
_OF_THE_SOURCE = (
    "requests", "events", "events_by_action", "passthrough", "other_devices", "device_flushes", "duration_s",
)  # fmt: skip
"""Counts of the source. A derived trace lists them under its source, not as its own."""
_IDENTITY = ("name", "title", "application", "first_event", "capacity_bytes", "lost", "unmatched", "malformed")
Facts = dict[str, Any]


def show_ns(time_ns: int) -> str:
    """Format a time exactly: `1.5 s`, `200 ms`, `3.25 us`."""
    for unit, digits in (("s", 9), ("ms", 6), ("us", 3)):
        if time_ns >= 10**digits or not time_ns:
            return f"{Decimal(time_ns).scaleb(-digits).normalize():f} {unit}"
    return f"{time_ns} ns"


@dataclass(frozen=True, kw_only=True)
class Filter:
    """What to keep and change, in this order; a request must match one value of each given criterion."""

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
    with writable(output, [source]), opened(source) as requests, TraceWriter(output) as writer:
        queries, facts, changes = (_repeated if "repeat" in steps else _changed)(requests, chosen)
        for table in row_groups(chain.from_iterable(map(requests.arrow, queries))):
            writer.write(table)
        if not writer.rows:
            raise UserError(f"no request is left: {_why_none(facts)}; no file was written")
        provenance = requests.provenance
        known = {key: provenance[key] for key in (*_IDENTITY, *_OF_THE_SOURCE) if key in provenance}
        known |= {"file": source.name, "sha256": sha256_of(source), "requests": requests.times.requests}
        entry = {"step": ", ".join(steps), **facts, "requests": writer.rows, "source": known}
        kept = {key: value for key, value in provenance.items() if key not in ("format", *_OF_THE_SOURCE)}
        # Lost and unmatched events stay listed: they may belong to the part that is left.
        about = {**kept, **changes, "derived": [*provenance.get("derived", []), entry]}
        writer.finish({key: value for key, value in about.items() if value is not None})
    return entry


def _why_none(facts: Mapping[str, Any]) -> str:
    absent = [name for name, count in facts.get("found", {}).items() if not count]
    if absent:
        return f"it has no request of {', '.join(absent)}"
    if "last_queued_ns" in facts:
        return f"none was queued between the given times, and the last at {show_ns(facts['last_queued_ns'])}"
    return "none matches all criteria"


def _changed(requests: Requests, chosen: Filter) -> tuple[Iterable[str], Facts, Facts]:
    """Return the query of the changed requests, the facts about them, and the changes of the provenance."""
    steps, changes, facts = chosen.steps, Facts(), Facts()
    rows = "requests"
    """Where the next step reads: a view, or a query in parentheses."""
    if "cut" in steps:
        rows, facts = _cut(requests, rows, chosen)
        changes |= _moved_origin(requests.provenance, chosen.from_ns)
    if "filter" in steps:
        rows, matched = _matching(requests, rows, chosen)
        facts |= matched
        if steps == ["filter"]:  # it does not change the application's duration
            changes["duration_s"] = requests.provenance.get("duration_s")
    if "drop-idle" in steps:
        rows, shortened = _without_idle(requests, rows, chosen)
        facts |= shortened
    return [f"FROM {rows}"], facts, changes


def _moved(rows: str, by: str) -> str:
    """Return a query of the rows with an amount added to all times."""
    return f"(SELECT * REPLACE ({', '.join(f'({name} + {by})::BIGINT AS {name}' for name in TIMES)}) FROM {rows})"


def _cut(requests: Requests, rows: str, chosen: Filter) -> tuple[str, Facts]:
    begin, end = chosen.from_ns, _LATEST_NS if chosen.to_ns is None else chosen.to_ns
    inside = f"queue_ns >= {begin} AND queue_ns < {end}"
    facts = requests.row(f"""
        SELECT count(*) FILTER (queue_ns < {begin}) AS dropped_before,
               count(*) FILTER (queue_ns >= {end}) AS dropped_after,
               count(*) FILTER (queue_ns < {begin} AND complete_ns > {begin}) AS missing_in_flight,
               count(*) FILTER (queue_ns < {begin} AND complete_ns IS NULL) AS dropped_without_completion,
               count(*) FILTER ({inside} AND complete_ns > {end}) AS in_flight_at_end,
               max(queue_ns) AS last_queued_ns
        FROM {rows}""")
    kept = _moved(f"{rows} WHERE {inside}", f"-({begin})")
    return kept, {"from_ns": begin, "to_ns": chosen.to_ns, **facts}


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


def _matching(requests: Requests, rows: str, chosen: Filter) -> tuple[str, Facts]:
    facts: Facts = {name: list(values) for name, values in chosen.criteria.items() if values}
    wanted = {f"{name} {value}": f"{name} = {_literal(value)}" for name, values in facts.items() for value in values}
    conditions = [f"{name} IN ({', '.join(map(_literal, values))})" for name, values in facts.items()]
    if chosen.range_bytes is not None:
        low, high = chosen.range_bytes
        facts["range"] = f"{format_size(low)}.." + ("" if high is None else format_size(high))
        conditions.append(f"length_bytes > 0 AND offset_bytes + length_bytes > {low}")
        conditions += [] if high is None else [f"offset_bytes < {high}"]
    kept = f"({' AND '.join(conditions)}) <> {chosen.inverted}"
    counts = [f"count(*) FILTER ({condition}) AS count_{place}" for place, condition in enumerate(wanted.values())]
    found = requests.row(f"SELECT {', '.join(counts)} FROM {rows}") if counts else {}
    dropped = requests.rows(f"""
        SELECT operation, count(*) AS requests, sum(length_bytes)::BIGINT AS bytes
        FROM {rows} WHERE NOT ({kept}) GROUP BY operation""").set_index("operation")
    facts |= {"not": chosen.inverted, "found": dict(zip(wanted, found.values(), strict=True))}
    facts["dropped"] = dropped.reindex([name for name in OPERATIONS if name in dropped.index]).to_dict("index")
    return f"(SELECT * FROM {rows} WHERE {kept})", facts


def _literal(value: str | int) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def _without_idle(requests: Requests, rows: str, chosen: Filter) -> tuple[str, Facts]:
    """Shorten gaps, from the start of the trace.

    A request without a completion ends at its last known event, so in a trace without completions a gap is a time
    without arrivals. A gap never lies within a request, so latencies and overlaps do not change.
    """
    resolution_ns, above_ns = requests.resolution_ns, chosen.idle_above_ns or 0
    if 1 < resolution_ns > above_ns:
        raise UserError(
            f"its times have a resolution of {show_ns(resolution_ns)}, so shorter gaps are unknown; give a longer limit"
        )
    keep_ns = above_ns if chosen.idle_keep_ns is None else chosen.idle_keep_ns
    gaps = f"""(
        SELECT * EXCLUDE (reach_ns), queue_ns - greatest(lag(reach_ns, 1, 0) OVER (), 0) AS gap_ns
        FROM (SELECT *, max(greatest(queue_ns, dispatch_ns, complete_ns)) OVER (ROWS UNBOUNDED PRECEDING) AS reach_ns
              FROM {rows}))"""
    facts = requests.row(f"""
        SELECT count(*) AS requests, count(*) FILTER (complete_ns IS NULL) AS without_completion,
               count(*) FILTER (gap_ns > {above_ns}) AS gaps,
               coalesce(sum(gap_ns - {keep_ns}) FILTER (gap_ns > {above_ns}), 0) AS removed_ns,
               coalesce(max(gap_ns) FILTER (gap_ns > {above_ns}), 0) AS longest_gap_ns
        FROM {gaps}""")
    unknown = facts["without_completion"]
    known = "nothing known to be in flight" if unknown else "nothing in flight"
    basis = "no arrival" if unknown == facts.pop("requests") else known
    removed = f"sum(CASE WHEN gap_ns > {above_ns} THEN gap_ns - {keep_ns} ELSE 0 END) OVER (ROWS UNBOUNDED PRECEDING)"
    shifted = f"(SELECT * EXCLUDE (gap_ns), {removed} AS removed_ns FROM {gaps})"
    shortened = f"(SELECT * EXCLUDE (removed_ns) FROM {_moved(shifted, '-removed_ns')})"
    return shortened, {"above_ns": above_ns, "keep_ns": keep_ns, "basis": basis, **facts}


def _repeated(requests: Requests, chosen: Filter) -> tuple[Iterable[str], Facts, Facts]:
    """Write the trace several times in succession, a query each.

    Each repetition begins when the one before has ended, and lies behind the device of the one before, so that it
    writes to other blocks. If the trace does not record its device's capacity, all lie at the same place.
    """
    found = requests.row("""
        SELECT coalesce(sum(length_bytes) FILTER (operation = 'write'), 0) AS writes,
               coalesce(max(dispatch_id), 0) + 1 AS dispatches, max(offset_bytes + length_bytes) AS end_bytes
        FROM requests""")
    times, capacity = chosen.times or 0, requests.provenance.get("capacity_bytes") or 0
    if chosen.written_bytes is not None:
        if not found["writes"]:
            raise UserError("writes nothing, so no number of repetitions writes more; give --times")
        times = -(-chosen.written_bytes // found["writes"])
    if not 1 <= times <= MOST_TIMES:
        raise UserError(f"{times} repetitions are not possible; give 1 to {MOST_TIMES}")
    if capacity and found["end_bytes"] > capacity:
        raise UserError(
            f"a request ends at byte {found['end_bytes']}, beyond the device's {capacity}; decode or import the trace "
            "again"
        )
    span_ns = requests.times.duration_ns + 1
    queries = (
        f"""
        SELECT * REPLACE (
            dispatch_id + {number * found["dispatches"]} AS dispatch_id,
            offset_bytes + CASE WHEN length_bytes > 0 THEN {number * capacity} ELSE 0 END AS offset_bytes)
        FROM {_moved("requests", str(number * span_ns))}"""
        for number in range(times)
    )
    facts = {"times": times, "shift_bytes": capacity, "written_bytes": times * found["writes"]}
    return queries, facts, {"capacity_bytes": capacity * times} if capacity else {}
