"""Which completion a request waited for in the trace, as far as the order within a process or on a CPU tells."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from drivelab.errors import UserError
from drivelab.replay.survey import Survey
from drivelab.trace.statistics.batch import UNKNOWN, Batch, Flags, Ints

NONE = -1
"""Record of a request that waits for no other."""


class Dependencies:
    """Follows a trace batch by batch: a request waits for the one of its stream that completed last before it came.

    A stream is a process (pid and name) or a CPU. Requests of which the trace does not know the stream wait for none.
    Held are the requests in flight and the last completion of each stream.

    Raises UserError when the trace has no completions.
    """

    def __init__(self, kind: str, found: Survey) -> None:
        self._kind = kind
        self._names: dict[str, int] = {}
        self._known = False
        empty = np.zeros(0, np.int64)
        self._waiting = (empty, empty, empty)
        """Stream, completion and record of requests that one to come may wait for."""
        if kind != "none" and not found.completed:
            raise UserError(
                f"the trace has no completions, so it does not tell which request a {self._word} waited for; "
                "choose dependencies none"
            )

    @property
    def _word(self) -> str:
        return {"process": "process", "cpu": "CPU"}[self._kind]

    def of(self, requests: pa.RecordBatch, batch: Batch, record: Ints) -> tuple[Ints, Ints]:
        """Record that each of the next requests waits for, or NONE, and ns between its completion and the request.

        `requests` and `batch` are the same; `record` is each request's own place in the schedule.
        """
        if self._kind == "none":
            return np.full(batch.rows, NONE), np.zeros(batch.rows, np.int64)
        stream, known = self._streams(requests, batch)
        self._known |= bool(known.any())
        ended = known & (batch.complete_ns != UNKNOWN)
        later = ended & (batch.complete_ns > batch.queue_ns)
        # At the same time completions come before the requests that they let go, in the order of the file; one that
        # ended when it was queued comes right behind itself.
        counts = 1 + (ended & ~later)
        row = np.repeat(np.arange(batch.rows), counts)
        asks = np.zeros(row.size, np.bool_)
        asks[np.cumsum(counts) - counts] = True
        events = [
            np.concatenate([waiting, values[later], values[row]])
            for waiting, values in zip(self._waiting, (stream, batch.complete_ns, record), strict=True)
        ]
        events[1][-row.size :] = batch.queue_ns[row]
        asking = np.concatenate([np.zeros(events[0].size - row.size, np.bool_), asks])
        asker = np.concatenate([np.full(events[0].size - row.size, NONE), row])
        order = np.argsort(events[1], kind="stable")
        order = order[np.argsort(events[0][order], kind="stable")]
        stream_in_order, time_ns, record_in_order = (values[order] for values in events)
        asking, asker = asking[order], asker[order]

        last = np.maximum.accumulate(np.where(asking, NONE, np.arange(order.size)))
        found = asking & (last >= 0)
        found[found] = stream_in_order[last[found]] == stream_in_order[found]
        found[found] = known[asker[found]]
        after, think_ns = np.full(batch.rows, NONE), np.zeros(batch.rows, np.int64)
        after[asker[found]] = record_in_order[last[found]]
        think_ns[asker[found]] = time_ns[found] - time_ns[last[found]]
        self._keep(stream_in_order, time_ns, record_in_order, ~asking, int(batch.queue_ns[-1]))
        return after, think_ns

    def finish(self) -> None:
        """Raises UserError when the trace knew the stream of no request."""
        if self._kind != "none" and not self._known:
            raise UserError(
                f"the trace does not know the {self._word} of any request, so nothing tells which it waited for; "
                "choose other dependencies"
            )

    def _keep(self, stream: Ints, time_ns: Ints, record: Ints, completion: Flags, now_ns: int) -> None:
        """Completions to come, and the last one of each stream until now."""
        stream, time_ns, record = stream[completion], time_ns[completion], record[completion]
        past = time_ns <= now_ns
        followed = np.zeros(stream.size, np.bool_)
        followed[:-1] = (stream[1:] == stream[:-1]) & past[1:]
        keep = ~past | ~followed
        self._waiting = stream[keep], time_ns[keep], record[keep]

    def _streams(self, requests: pa.RecordBatch, batch: Batch) -> tuple[Ints, Flags]:
        """A number for each request's stream, and whether the trace knows it."""
        if self._kind == "cpu":
            cpu = batch.ints("cpu")
            return cpu, cpu >= 0
        column, pid = requests.column("process"), batch.ints("pid")
        names = column.dictionary.to_pylist() or [""]
        codes = np.array([self._names.setdefault(name, len(self._names)) for name in names], np.int64)
        named = np.array([bool(name) for name in names])
        index = column.indices.to_numpy(zero_copy_only=False)
        return (codes[index] << 32) + pid, named[index] | (pid >= 0)
