"""Count a trace in two passes, and return the tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.core.errors import UserError
from drivelab.trace.parquet_schema import FLAGS, OPERATIONS, TraceFile, has_queue_times, open_trace
from drivelab.trace.statistics import batch as marks
from drivelab.trace.statistics import full_survey, overview
from drivelab.trace.statistics.arrivals import Arrivals
from drivelab.trace.statistics.batch import READ, UNKNOWN, WRITE, Batch, Intervals
from drivelab.trace.statistics.depth import Depth, Dispatches
from drivelab.trace.statistics.footprint import Footprint
from drivelab.trace.statistics.latencies import PHASES, Latency, Operations
from drivelab.trace.statistics.streams import streams

FOOTPRINT_BLOCK_BYTES = 4096
_TEXTS = {"source": "backend", "application": "application"}


def row_of(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """Return a trace's row of table `traces`, from the tables of statistics.count."""
    facts = tables["trace_overview"].iloc[0]
    operations = tables["trace_operations"].set_index("operation")
    names = {"reads": "read", "writes": "write", "flushes": "flush", "discards": "discard"}
    lost = int(facts["lost"])
    return {
        "trace": str(facts["trace"]),
        **{column: "unknown" if pd.isna(facts[name]) else facts[name] for column, name in _TEXTS.items()},
        "requests": int(operations["requests"].sum()),
        **{name: int(operations.loc[operation, "requests"]) for name, operation in names.items()},
        "read_bytes": int(operations.loc["read", "bytes"]),
        "write_bytes": int(operations.loc["write", "bytes"]),
        "footprint_bytes": int(facts["footprint_bytes"]),
        "footprint_block_bytes": int(facts["footprint_block_bytes"]),
        "duration_s": float(facts["duration_s"]),
        "lossy": lost > 0,
        "lost": lost,
    }


def duration_ns(requests: pd.DataFrame) -> int:
    """Return the time from first queueing to last queueing or completion, or 0."""
    if requests.empty:
        return 0
    last = max(requests["queue_ns"].max(), requests["complete_ns"].max(skipna=True) or 0)
    return int(last - requests["queue_ns"].min())


def footprint_bytes(offset_bytes: npt.NDArray[np.int64], length_bytes: npt.NDArray[np.int64]) -> int:
    """Return the bytes of all distinct 4 KiB blocks that the extents touch."""
    used = length_bytes > 0
    first = offset_bytes[used] // FOOTPRINT_BLOCK_BYTES
    after = -(-(offset_bytes[used] + length_bytes[used]) // FOOTPRINT_BLOCK_BYTES)
    order = np.argsort(first, kind="stable")
    first, after = first[order], after[order]
    if not first.size:
        return 0
    reached = np.concatenate([first[:1], np.maximum.accumulate(after)[:-1]])
    return int(np.clip(after - np.maximum(first, reached), 0, None).sum()) * FOOTPRINT_BLOCK_BYTES


COUNTS = ("reads", "writes", "flushes", "discards", "write_zeroes")
"""Columns for the counts of OPERATIONS."""
_LEAST_SPAN_NS = 1000
"""Shorter traces have no rate."""


class Timeline:
    """Counts over time, batch by batch."""

    def __init__(self, intervals: Intervals, footprint: Footprint) -> None:
        self._intervals, self._footprint = intervals, footprint
        self._block_bytes = 1 << footprint.block_shift
        self._requests = np.zeros((intervals.count, len(OPERATIONS)), np.int64)
        self._bytes = np.zeros((intervals.count, len(OPERATIONS)))
        self._new = np.zeros(intervals.count, np.int64)
        self._working = np.zeros(intervals.count, np.int64)
        self._current = 0
        self.read_blocks = self.write_blocks = 0

    def add(self, batch: Batch) -> None:
        number = self._intervals.number(batch.queue_ns)
        cell, shape = number * len(OPERATIONS) + batch.operation, self._requests.shape
        self._requests += np.bincount(cell, minlength=self._requests.size).reshape(shape)
        self._bytes += np.bincount(cell, batch.length_bytes, self._bytes.size).reshape(shape)
        edges = np.flatnonzero(np.diff(number)) + 1
        for begin, end in zip([0, *edges.tolist()], [*edges.tolist(), batch.rows], strict=True):
            current = int(number[begin])
            if current != self._current:
                self._footprint.begin_interval()
                self._current = current
            touched = self._footprint.add(batch, slice(begin, end))
            self._new[current] += touched.blocks
            self._working[current] += touched.interval_blocks
            self.read_blocks += touched.read_blocks
            self.write_blocks += touched.write_blocks

    @property
    def footprint_bytes(self) -> int:
        return int(self._new.sum()) * self._block_bytes

    def frame(self) -> pd.DataFrame:
        """Return a row for each interval; times start at the first request."""
        edges_s = self._intervals.edges_ns() / 1e9
        requests = self._requests.sum(axis=1)
        lengths = self._bytes.astype(np.int64)
        timed = self._intervals.span_ns >= _LEAST_SPAN_NS
        return pd.DataFrame(
            {
                "begin_s": edges_s[:-1],
                "end_s": edges_s[1:],
                "requests": requests,
                **{name: self._requests[:, place] for place, name in enumerate(COUNTS)},
                "read_bytes": lengths[:, OPERATIONS.index("read")],
                "write_bytes": lengths[:, OPERATIONS.index("write")],
                "discard_bytes": lengths[:, OPERATIONS.index("discard")],
                "requests_per_s": requests / np.diff(edges_s) if timed else np.nan,
                "footprint_bytes": np.cumsum(self._new) * self._block_bytes,
                "working_set_bytes": self._working * self._block_bytes,
                "block_bytes": self._block_bytes,
            }
        )


BANDS = 128
_ALIGNMENT_BYTES = 4096


class Heat:
    """Counts in cells of time and address; a request counts fully at its start."""

    def __init__(self, intervals: Intervals, low_bytes: int, high_bytes: int) -> None:
        self._intervals = intervals
        self._low_bytes = low_bytes // _ALIGNMENT_BYTES * _ALIGNMENT_BYTES
        span = max(high_bytes - self._low_bytes, 1)
        self._band_bytes = -(-span // (BANDS * _ALIGNMENT_BYTES)) * _ALIGNMENT_BYTES
        cells = intervals.count * BANDS
        self._requests = {direction: np.zeros(cells, np.int64) for direction in (READ, WRITE)}
        self._bytes = {direction: np.zeros(cells) for direction in (READ, WRITE)}

    def add(self, batch: Batch) -> None:
        for direction in (READ, WRITE):
            chosen = batch.transfers & (batch.operation == direction)
            band = (batch.offset_bytes[chosen] - self._low_bytes) // self._band_bytes
            cell = self._intervals.number(batch.queue_ns[chosen]) * BANDS + band
            self._requests[direction] += np.bincount(cell, minlength=self._requests[direction].size)
            self._bytes[direction] += np.bincount(cell, batch.length_bytes[chosen], self._bytes[direction].size)

    def frame(self) -> pd.DataFrame:
        """Return a row for each non-empty cell, with the cell's edges."""
        used = np.flatnonzero(self._requests[READ] + self._requests[WRITE])
        number, band = used // BANDS, used % BANDS
        edges_s = self._intervals.edges_ns() / 1e9
        low = self._low_bytes + band * self._band_bytes
        return pd.DataFrame(
            {
                "begin_s": edges_s[number],
                "end_s": edges_s[number + 1],
                "low_bytes": low,
                "high_bytes": low + self._band_bytes,
                "reads": self._requests[READ][used],
                "writes": self._requests[WRITE][used],
                "read_bytes": self._bytes[READ][used].astype(np.int64),
                "write_bytes": self._bytes[WRITE][used].astype(np.int64),
            }
        )


_COLUMNS = (*full_survey.COLUMNS, *FLAGS, "error", "dispatch_id", "pieces", "requeues")


def count(path: Path, trace: str) -> dict[str, pd.DataFrame]:
    """Return all tables of drivelab.tables.schemas.TRACE_TABLES for trace `trace`.

    Memory does not grow with the trace. The result does not depend on the batches of the file.

    Raises UserError when the file is not a trace, is damaged, or has no or impossible requests.
    """
    with open_trace(path) as file:
        if not file.rows:
            raise UserError(f"{path}: the trace has no request to characterise; capture for longer")
        try:
            return Counters(file).tables(file.provenance, trace)
        except UserError as error:
            text = str(error)
            raise UserError(text if text.startswith(str(path)) else f"{path}: {text}") from None


class Counters:
    """All counters of an open trace."""

    def __init__(self, file: TraceFile) -> None:
        self.survey = full_survey.survey(file.batches(full_survey.COLUMNS))
        self.resolution_ns = marks.resolution_ns(file.provenance)
        self.streams = streams(self.survey.lengths)
        totals = self.survey
        intervals = Intervals.of(totals.first_ns, totals.duration_ns, self.resolution_ns)
        self.intervals = intervals
        self.timeline = Timeline(intervals, Footprint(totals.words))
        self.heat = Heat(intervals, totals.low_bytes, totals.high_bytes)
        self.arrivals = Arrivals(totals.first_ns, self.resolution_ns)
        from_queue = has_queue_times(file.provenance)
        self.latency = Latency(PHASES if from_queue else PHASES[2:])
        self.operations = Operations()
        self.in_flight = Depth(intervals)
        self.queued = self.in_flight if from_queue else Depth(intervals)
        """Stays empty without queue times."""
        self.dispatched = Dispatches(Depth(intervals))
        for requests in file.batches(_COLUMNS):
            if requests.num_rows:
                self._add(Batch(requests))
        self.in_flight.finish(totals.last_ns)
        self.dispatched.finish(totals.last_ns)

    def _add(self, batch: Batch) -> None:
        for counter in (self.timeline, self.heat, self.latency, self.operations, self.dispatched):
            counter.add(batch)
        self.arrivals.add(batch.queue_ns)
        completed = batch.complete_ns != UNKNOWN
        self.in_flight.add(batch.queue_ns[completed], batch.complete_ns[completed], int(batch.queue_ns[-1]))

    def tables(self, provenance: Mapping[str, Any], trace: str) -> dict[str, pd.DataFrame]:
        """Return tables by name; each has the trace's name as first column."""
        frames = {
            "trace_overview": overview.overview(self, provenance),
            "trace_operations": overview.operations(self),
            "trace_over_time": self.timeline.frame().assign(**overview.depths(self)),
            "trace_sizes": overview.sizes(self.survey.lengths),
            "trace_interarrival": pd.DataFrame(self.arrivals.between.bins(), columns=["low_ns", "high_ns", "requests"]),
            "trace_burstiness": self.arrivals.frame(),
            "trace_latency": self.latency.frame(),
            "trace_heat": self.heat.frame(),
            "trace_streams": self.streams.drop(columns="key"),
        }
        return {name: frame.assign(trace=trace) for name, frame in frames.items()}
