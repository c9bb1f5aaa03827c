"""Read a trace's requests as dispatched, after merging in the block layer.

With direct I/O nothing merges them a second time, so a replay must issue them merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from drivelab.trace.schema import REQUESTS, TraceFile
from drivelab.trace.statistics.batch import UNKNOWN, Batch, Flags, Ints

_GROUPING = ("queue_ns", "operation", "offset_bytes", "length_bytes", "dispatch_id", "pieces", "preflush", "fua")
_EXTENT = ("queue_ns", "complete_ns", "operation", "offset_bytes", "length_bytes")
_PATCHED = ("offset_bytes", "length_bytes", "complete_ns")


class Dispatched:
    """Requests of an open trace as dispatched, in batches, readable repeatedly.

    Adjoining requests with the same `dispatch_id` become one. It takes position, time, process and flags from the part
    queued first, and the last completion of all parts. Writes with a preflush or FUA and split requests are unchanged.
    Memory: about 20 B per request during construction, and 100 B per merged request.

    Raises UserError when the trace is damaged or holds impossible requests.
    """

    def __init__(self, trace: TraceFile) -> None:
        self._trace = trace
        self._heads = {name: np.zeros(0, np.int64) for name in ("row", *_PATCHED)}
        self._absorbed = np.zeros(0, np.int64)
        shared = _shared(self._mergeable_ids())
        if shared.size:
            self._group(shared)

    @property
    def merged(self) -> int:
        """Number of queued requests that were merged into another."""
        return int(self._absorbed.size)

    def batches(self, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """Yield non-empty batches with `columns` of REQUESTS, in `queue_ns` order."""
        row = 0
        for batch in self._trace.batches(columns):
            after = row + batch.num_rows
            merged = self._merged(batch, row, after)
            row = after
            if merged.num_rows:
                yield merged

    def _mergeable_ids(self) -> Ints:
        """Return each request's `dispatch_id`, UNKNOWN where it cannot have been merged."""
        ids, row = np.full(self._trace.rows, UNKNOWN), 0
        for requests in self._trace.batches(_GROUPING):
            batch = Batch(requests)
            ids[row : row + batch.rows] = np.where(_mergeable(batch), batch.ints("dispatch_id"), UNKNOWN)
            row += batch.rows
        return ids

    def _group(self, shared: Ints) -> None:
        parts: list[dict[str, Ints]] = []
        row = 0
        for requests in self._trace.batches(dict.fromkeys((*_GROUPING, *_EXTENT))):
            batch = Batch(requests)
            ids = batch.ints("dispatch_id")
            place = np.minimum(np.searchsorted(shared, ids), shared.size - 1)
            members = np.flatnonzero(_mergeable(batch) & (shared[place] == ids))
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
                    values = _ints(batch.column(name))
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


def _mergeable(batch: Batch) -> Flags:
    whole = (batch.ints("pieces") == 1) & (batch.length_bytes > 0)
    return np.asarray(whole & ~batch.flag("preflush") & ~batch.flag("fua"), np.bool_)


def _shared(ids: Ints) -> Ints:
    """Return the values that occur more than once, ascending, without UNKNOWN."""
    ids = ids[ids != UNKNOWN]
    ids.sort(kind="stable")  # They are nearly in order.
    repeated = ids[1:][ids[1:] == ids[:-1]]
    new = np.ones(repeated.size, np.bool_)
    new[1:] = repeated[1:] != repeated[:-1]
    return np.asarray(repeated[new], np.int64)


def _ints(column: pa.Array) -> Ints:
    return np.array(column.fill_null(UNKNOWN).to_numpy(zero_copy_only=False), np.int64)
