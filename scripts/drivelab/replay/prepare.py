"""Prepare a replay: X.schedule for the engine, X.planned.parquet for evaluation.

Three passes over the trace, in batches: find merged requests, survey the extent, plan each request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from drivelab.core.behind import Behind
from drivelab.core.errors import UserError
from drivelab.plan.replay_choice import ReplayChoice
from drivelab.replay import compiled, survey
from drivelab.replay.engine_records import ScheduleWriter
from drivelab.replay.mapping import MappingReport
from drivelab.replay.planner import COLUMNS, PLANNED, Planner
from drivelab.trace.parquet_schema import REQUESTS, RowsWriter, TraceFile, open_trace, row_groups
from drivelab.trace.records import refuse_source, writable
from drivelab.trace.statistics.batch import UNKNOWN, Batch, Flags, Ints, Words, ints

_GROUPING = ("dispatch_id", "pieces", "length_bytes", "preflush", "fua")
_EXTENT = ("queue_ns", "complete_ns", "operation", "offset_bytes", "length_bytes")
_ROWS = 1 << 16
"""Rows processed at a time: few enough for the CPU's cache, and a whole number of batches in a row group."""
_PLACES_PER_ROW = 8
"""Bits for each request to find repeated `dispatch_id`: so many that few others share a bit with one."""
_PATCHED = ("offset_bytes", "length_bytes", "complete_ns")


class Dispatched:
    """Requests of an open trace as dispatched, in batches, readable repeatedly.

    Adjoining requests with the same `dispatch_id` become one. It takes position, time, process and flags from the part
    queued first, and the last completion of all parts. Writes with a preflush or FUA and split requests are unchanged.
    Memory: at most 4 B per request during construction, and 100 B per merged request.

    Raises UserError when the trace is damaged or holds impossible requests.
    """

    def __init__(self, trace: TraceFile) -> None:
        self._trace = trace
        self._heads = {name: np.zeros(0, np.int64) for name in ("row", *_PATCHED)}
        self._absorbed = np.zeros(0, np.int64)
        repeated = self._repeated_ids()
        if repeated.any():
            self._group(repeated)

    def batches(self, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """Yield non-empty batches with `columns` of REQUESTS, in `queue_ns` order."""
        row = 0
        for batch in self._trace.batches(columns, _ROWS):
            after = row + batch.num_rows
            merged = self._merged(batch, row, after)
            row = after
            if merged.num_rows:
                yield merged

    def _repeated_ids(self) -> Words:
        """Return a bit for each `dispatch_id` modulo their number: whether several mergeable requests may share it."""
        places = 64 << max(0, (self._trace.rows * _PLACES_PER_ROW - 1) // 64).bit_length()
        seen, repeated = np.zeros(places // 64, np.uint64), np.zeros(places // 64, np.uint64)
        for requests in self._trace.batches(_GROUPING, _ROWS):
            compiled.mark_repeats(*_ids(requests), seen, repeated)
        return repeated

    def _group(self, repeated: Words) -> None:
        parts: list[dict[str, Ints]] = []
        row = 0
        for requests in self._trace.batches(dict.fromkeys((*_GROUPING, *_EXTENT)), _ROWS):
            batch, (ids, mergeable) = Batch(requests), _ids(requests)
            members = np.flatnonzero(compiled.are_repeats(ids, mergeable, repeated))
            parts.append(
                {
                    "row": row + members,
                    "id": ids[members],
                    "operation": batch.operation[members].astype(np.int8),
                    "offset_bytes": batch.offset_bytes[members],
                    "length_bytes": batch.length_bytes[members],
                    "complete_ns": batch.complete_ns[members],
                }
            )
            row += batch.rows
        columns = {name: np.concatenate([part.pop(name) for part in parts]) for name in list(parts[0])}
        order = np.lexsort((columns["offset_bytes"], columns["operation"], columns["id"]))
        columns = {name: values[order] for name, values in columns.items()}
        end = columns["offset_bytes"] + columns["length_bytes"]
        begins = np.ones(order.size, np.bool_)
        begins[1:] = columns["offset_bytes"][1:] != end[:-1]
        for name in ("id", "operation"):
            begins[1:] |= columns[name][1:] != columns[name][:-1]
        at = np.flatnonzero(begins)
        head = np.minimum.reduceat(columns["row"], at)
        several = np.diff(np.append(at, order.size)) > 1
        heads = {
            "row": head,
            "offset_bytes": columns["offset_bytes"][at],
            "length_bytes": np.add.reduceat(columns["length_bytes"], at),
            "complete_ns": np.maximum.reduceat(columns["complete_ns"], at),
        }
        by_row = np.flatnonzero(several)[np.argsort(head[several])]
        self._heads = {name: values[by_row] for name, values in heads.items()}
        self._absorbed = np.sort(np.setdiff1d(columns["row"], head, assume_unique=True))

    def _merged(self, batch: pa.RecordBatch, row: int, after: int) -> pa.RecordBatch:
        low, high = np.searchsorted(self._heads["row"], (row, after))
        if high > low:
            at = self._heads["row"][low:high] - row
            for name in _PATCHED:
                if name in batch.schema.names:
                    values = ints(batch.column(name)).copy()
                    values[at] = self._heads[name][low:high]
                    place, kind = batch.schema.get_field_index(name), REQUESTS.field(name)
                    column = pa.array(values, mask=values == UNKNOWN if kind.nullable else None)
                    batch = batch.set_column(place, kind, column)
        low, high = np.searchsorted(self._absorbed, (row, after))
        if high > low:
            keep = np.ones(batch.num_rows, np.bool_)
            keep[self._absorbed[low:high] - row] = False
            batch = batch.filter(pa.array(keep))
        return batch


def _ids(requests: pa.RecordBatch) -> tuple[Ints, Flags]:
    """Return each request's `dispatch_id`, and whether it can be a part of a merged request."""
    ids, pieces, length = (ints(requests.column(name)) for name in ("dispatch_id", "pieces", "length_bytes"))
    preflush, fua = (requests.column(name).to_numpy(zero_copy_only=False) for name in ("preflush", "fua"))
    return ids, np.asarray((ids != UNKNOWN) & (pieces == 1) & (length > 0) & ~preflush & ~fua, np.bool_)


@dataclass(frozen=True)
class Prepared:
    """A trace prepared for a drive."""

    schedule: Path
    planned: Path
    requests: int
    """Records of the schedule."""
    choice: ReplayChoice
    mapping: MappingReport
    trace_duration_s: float
    """Time from the first queueing to the last queueing or completion."""
    issue_span_s: float
    """Time from the first deadline to the last; without deadlines, from first to last arrival in the trace."""
    idle_removed_s: float
    """Total time cut from gaps above the idle cap."""
    lost: int
    """Events missing from the trace."""
    provenance: Mapping[str, Any]
    """Provenance of the trace."""
    counts: Mapping[str, Mapping[str, int]]
    """Records and bytes of every operation of OPERATIONS."""
    overlapping: int | None
    """Requests that overlap another in flight in the trace; None if the trace has no completions."""

    def to_mapping(self) -> dict[str, Any]:
        """Return all but the paths, JSON-able."""
        return {
            "requests": self.requests,
            "choice": self.choice.to_mapping(),
            "timing": self.choice.timing.words(),
            "dependencies": self.choice.dependencies,
            "mapping": self.mapping.to_mapping(),
            "trace_duration_s": self.trace_duration_s,
            "issue_span_s": self.issue_span_s,
            "idle_removed_s": self.idle_removed_s,
            "lost": self.lost,
            "provenance": dict(self.provenance),
            "planned": dict(self.counts),
            "overlapping": self.overlapping,
        }


def prepare(
    trace: Path,
    stem: Path,
    choice: ReplayChoice,
    capacity_bytes: int,
    logical_block_bytes: int,
) -> Prepared:
    """Write `stem`.schedule and `stem`.planned.parquet for a drive.

    The replay issues requests as the traced drive received them, after merging. A write with a preflush becomes a flush
    and a write that waits for it. Reads and writes longer than LONGEST_TRANSFER_BYTES become several with one deadline.

    Raises UserError when the file is not a trace, is damaged, has no reads or writes, or cannot be replayed on this
    drive with these settings. Then neither file is written.
    """
    schedule, planned = (stem.with_name(f"{stem.name}{suffix}") for suffix in (".schedule", ".planned.parquet"))
    for output in (schedule, planned):
        refuse_source(output, [trace])
    with writable(schedule), open_trace(trace) as file:
        try:
            return _prepare(file, schedule, planned, choice, capacity_bytes, logical_block_bytes)
        except UserError as error:
            text = str(error)
            raise UserError(text if text.startswith(str(trace)) else f"{trace}: {text}") from None


def _prepare(
    file: TraceFile, schedule: Path, planned: Path, choice: ReplayChoice, capacity_bytes: int, block_bytes: int
) -> Prepared:
    requests = Dispatched(file)
    gap_bytes = choice.mapping.gap_bytes if choice.mapping.method == "compact" else None
    times = survey.survey(requests.batches(survey.COLUMNS), block_bytes, gap_bytes)
    if not times.transfers:
        raise UserError("the trace holds neither reads nor writes, so there is nothing to replay")
    planner = Planner(choice, times, capacity_bytes, block_bytes)
    with RowsWriter(planned, PLANNED) as rows:
        with ScheduleWriter(schedule, capacity_bytes, block_bytes) as records, Behind() as behind:
            for group in row_groups(_recorded(planner, requests, records)):
                behind.do(rows.write, group)
                del group  # it is written before the next one is whole
            planner.dependencies.finish()
        prepared = Prepared(
            schedule=schedule,
            planned=planned,
            requests=records.count,
            choice=choice,
            mapping=planner.mapper.report(file.rows),
            trace_duration_s=times.duration_ns / 1e9,
            issue_span_s=planner.span_ns / 1e9,
            idle_removed_s=planner.idle_removed_ns / 1e9,
            lost=sum(dict(file.provenance.get("lost", {})).values()),
            provenance=file.provenance,
            counts=planner.counts(),
            overlapping=planner.overlapping,
        )
        rows.finish(prepared.to_mapping())
    return prepared


def _recorded(planner: Planner, requests: Dispatched, records: ScheduleWriter) -> Iterator[pa.RecordBatch]:
    """Write the records of all requests, and yield their PLANNED rows."""
    for batch in requests.batches(COLUMNS):
        for planned_records, planned_rows in planner.plan(batch):
            records.write(planned_records)
            yield planned_rows
