"""Find the completion that each request waited for in the whole trace, or in its process.

In the whole trace, a request may depend on every request that completed before it was queued (Haghdoost, He, Fredin,
Du: On the accuracy and scalability of intensive I/O workload replay, FAST 2017). The replay keeps two properties of
this graph with one dependency for each request: a request waits for the last of these completions, and is issued with
at most as many others in flight as in the trace (drivelab.replay.timing.Depths). So a request waits for a whole burst
that ended before it, even if the drive completes the burst in another order.

The order of processes is only for the trace that stands in for an application (drivelab.application.stand_in).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from drivelab.core.errors import UserError
from drivelab.trace.statistics.batch import UNKNOWN, Batch, Flags, Ints, Times

NONE = -1
"""Marks a request that waits for no other."""


class Dependencies:
    """Link each request to the last completion before it, batch by batch.

    Completions count in streams: the whole trace is one, or each process (pid and name). Requests of an unknown process
    wait for no other. Memory holds the requests in flight and the last completion of each stream.

    Raises UserError when the trace has no completions.
    """

    def __init__(self, kind: str, times: Times) -> None:
        self._kind = kind
        self._names: dict[str, int] = {}
        self._known = False
        empty = np.zeros(0, np.int64)
        self._completions = (empty, empty, empty)
        """Stream, time and record of those that a later request may wait for."""
        if kind != "none" and not times.completed:
            raise UserError(
                "the trace has no completions, so it does not show which request another waited for; choose "
                "dependencies none"
            )

    def of(self, requests: pa.RecordBatch, batch: Batch, record: Ints) -> tuple[Ints, Ints]:
        """Return each request's dependency (a record or NONE) and the ns since it ended.

        `requests` and `batch` hold the same requests; `record` is the index of each in the schedule.
        """
        if self._kind == "none":
            return np.full(batch.rows, NONE), np.zeros(batch.rows, np.int64)
        of_request, known = self._streams(requests, batch)
        self._known |= bool(known.any())
        ends = known & (batch.complete_ns != UNKNOWN)
        new = (of_request[ends], batch.complete_ns[ends], record[ends])
        stream, time_ns, ended = (np.concatenate(both) for both in zip(self._completions, new, strict=True))

        # All completions and requests in the order of their time, by stream. Of equal times, a completion precedes a
        # later request, and follows its own.
        streams = np.concatenate([stream, of_request])
        records = np.concatenate([ended, record])
        is_request = np.arange(streams.size) >= stream.size
        order = np.lexsort((~is_request, records, np.concatenate([time_ns, batch.queue_ns]), streams))
        place = np.where(is_request[order], -1, np.arange(order.size))
        last = np.empty(order.size, np.int64)
        last[order] = np.maximum.accumulate(place)
        last = last[stream.size :]
        found = known & (last >= 0)
        found[found] &= streams[order[last[found]]] == of_request[found]
        before = order[last[found]]
        after, think_ns = np.full(batch.rows, NONE), np.zeros(batch.rows, np.int64)
        after[found], think_ns[found] = ended[before], batch.queue_ns[found] - time_ns[before]

        # Keep the last completion of each stream, and those after the last request.
        rank = np.lexsort((ended, time_ns, stream))
        stream, time_ns, ended = stream[rank], time_ns[rank], ended[rank]
        done = time_ns <= batch.queue_ns[-1]
        superseded = np.zeros(stream.size, np.bool_)
        superseded[:-1] = done[1:] & (stream[1:] == stream[:-1])
        self._completions = (stream[~superseded], time_ns[~superseded], ended[~superseded])
        return after, think_ns

    def finish(self) -> None:
        """Raise UserError when the trace names no process for any request."""
        if self._kind != "none" and not self._known:
            raise UserError("the trace does not record the process of any request, so dependencies are unknown")

    def _streams(self, requests: pa.RecordBatch, batch: Batch) -> tuple[Ints, Flags]:
        """Return a number for each request's stream, and whether the trace records it."""
        if self._kind == "trace":
            return np.zeros(batch.rows, np.int64), np.ones(batch.rows, np.bool_)
        column, pid = requests.column("process"), batch.ints("pid")
        names = column.dictionary.to_pylist() or [""]
        codes = np.array([self._names.setdefault(name, len(self._names)) for name in names], np.int64)
        named = np.array([bool(name) for name in names])
        index = column.indices.to_numpy(zero_copy_only=False)
        return (codes[index] << 32) + pid, named[index] | (pid >= 0)
