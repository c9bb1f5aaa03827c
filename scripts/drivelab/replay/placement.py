"""Place the requests of a trace on a target batch by batch, and count the changes."""

from __future__ import annotations

import pyarrow as pa

from drivelab.replay.mapping import Mapper, MappingReport, Placed
from drivelab.replay.survey import Shaping, Survey
from drivelab.trace.parquet_schema import REQUESTS
from drivelab.trace.statistics.batch import Batch


class Placement:
    """The requests so far on their target, and how they were changed."""

    def __init__(self, mapper: Mapper, surveyed: Survey) -> None:
        self._mapper, self._before = mapper, surveyed.shape
        known_bytes = self._before.footprint_bytes if mapper.keeps_footprint else None
        self._after = Shaping(known_bytes) if mapper.alters else None
        self._requests = 0
        self.split = 0
        """Requests that became several."""

    def place(self, requests: pa.RecordBatch) -> tuple[pa.RecordBatch, Batch]:
        """Return the requests that are left, on the target."""
        batch = Batch(requests)
        placed = self._mapper.place(batch)
        self._requests += batch.rows
        if placed.altered:
            requests = _moved(requests, placed)
            batch = Batch(requests)
        if self._after is not None:
            self._after.add(batch)
        return requests, batch

    def report(self, requests_in_trace: int) -> MappingReport:
        """Return how the requests so far were mapped."""
        mapper, before = self._mapper, self._before
        after = before if self._after is None else self._after.shape()
        return MappingReport(
            method=mapper.method,
            reason=mapper.reason,
            capacity_bytes=mapper.capacity_bytes,
            logical_block_bytes=mapper.block_bytes,
            range_start_bytes=mapper.low_block * mapper.block_bytes,
            range_bytes=mapper.range_blocks * mapper.block_bytes,
            requests_in_trace=requests_in_trace,
            requests_merged=requests_in_trace - self._requests,
            requests_moved=mapper.moved,
            requests_resized=mapper.resized,
            requests_split=self.split,
            requests_clipped=mapper.clipped,
            requests_dropped=mapper.dropped,
            footprint_before_bytes=before.footprint_bytes,
            footprint_after_bytes=after.footprint_bytes,
            sequential_before_pct=before.sequential_pct,
            sequential_after_pct=after.sequential_pct,
            retouched_before_bytes=before.retouched_bytes,
            retouched_after_bytes=after.retouched_bytes,
        )


def _moved(requests: pa.RecordBatch, placed: Placed) -> pa.RecordBatch:
    """Return the requests that are left, at their places."""
    for name, values in (("offset_bytes", placed.offset_bytes), ("length_bytes", placed.length_bytes)):
        place = requests.schema.get_field_index(name)
        requests = requests.set_column(place, REQUESTS.field(name), pa.array(values))
    return requests.filter(pa.array(placed.kept))
