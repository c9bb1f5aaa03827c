"""Count a trace in two passes, and return the tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.errors import UserError
from drivelab.trace.schema import FLAGS, TraceFile, open_trace
from drivelab.trace.statistics import marks, overview, survey
from drivelab.trace.statistics.arrivals import Arrivals
from drivelab.trace.statistics.batch import UNKNOWN, Batch
from drivelab.trace.statistics.depth import Depth
from drivelab.trace.statistics.dispatches import Dispatches
from drivelab.trace.statistics.footprint import Footprint
from drivelab.trace.statistics.heat import Heat
from drivelab.trace.statistics.intervals import Intervals
from drivelab.trace.statistics.latency import Latency
from drivelab.trace.statistics.operations import Operations
from drivelab.trace.statistics.reuse import Reuse
from drivelab.trace.statistics.sequence import Sequence
from drivelab.trace.statistics.streams import StreamsOverTime, streams
from drivelab.trace.statistics.timeline import Timeline

_COLUMNS = (*survey.COLUMNS, *FLAGS, "error", "dispatch_id", "pieces", "requeues")


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
        self.survey = survey.survey(file.batches(survey.COLUMNS), file.rows)
        self.resolution_ns = marks.resolution_ns(file.provenance)
        self.streams = streams(self.survey.lengths)
        totals = self.survey
        intervals = Intervals.of(totals.first_ns, totals.duration_ns, self.resolution_ns)
        self.intervals = intervals
        self.timeline = Timeline(intervals, Footprint(totals.words))
        self.heat = Heat(intervals, totals.low_bytes, totals.high_bytes)
        self.reuse = Reuse(totals.sample)
        self.arrivals = Arrivals(totals.first_ns, self.resolution_ns)
        self.latency = Latency()
        self.operations = Operations()
        self.queued = Depth(intervals)
        self.dispatched = Dispatches(Depth(intervals))
        self.streams_over_time = StreamsOverTime(self.streams, totals.lengths, intervals)
        sequence = Sequence()
        for requests in file.batches(_COLUMNS):
            if requests.num_rows:
                self._add(Batch(requests), sequence)
        self.queued.finish(totals.last_ns)
        self.dispatched.finish(totals.last_ns)

    def _add(self, batch: Batch, sequence: Sequence) -> None:
        for counter in (self.timeline, self.heat, self.reuse, self.latency, self.operations, self.dispatched):
            counter.add(batch)
        self.arrivals.add(batch.queue_ns)
        completed = batch.complete_ns != UNKNOWN
        self.queued.add(batch.queue_ns[completed], batch.complete_ns[completed], int(batch.queue_ns[-1]))
        self.streams_over_time.add(batch, sequence.sequential(batch)[0])

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
            "trace_streams_over_time": self.streams_over_time.frame(),
            "trace_reuse": self.reuse.frame(),
        }
        return {name: frame.assign(trace=trace) for name, frame in frames.items()}
