"""Find the completion that each request waited for in its process, its CPU, or the whole trace.

In the whole trace, a request may depend on every request that completed before it was queued (Haghdoost, He, Fredin,
Du: On the accuracy and scalability of intensive I/O workload replay, FAST 2017). The replay keeps two properties of
this graph with one dependency for each request: a request waits for the last of these completions, and is issued with
at most as many others in flight as in the trace (drivelab.replay.timing.Depths). So a request waits for a whole burst
that ended before it, even if the drive completes the burst in another order.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from drivelab.core.errors import UserError
from drivelab.replay import compiled
from drivelab.trace.statistics.batch import Batch, Flags, Ints, Times

NONE = -1
"""Marks a request that waits for no other."""


class Dependencies:
    """Link each request to the last completion of its stream, batch by batch.

    A stream is a process (pid and name), a CPU, or the whole trace. Requests of unknown stream wait for no other.
    Memory holds the requests in flight and the last completion of each stream.

    Raises UserError when the trace has no completions.
    """

    def __init__(self, kind: str, times: Times) -> None:
        self._kind = kind
        self._names: dict[str, int] = {}
        self._known = False
        empty = np.zeros(0, np.int64)
        self._waiting = (empty, empty, empty)
        """Stream, completion and record of the requests that a later request may wait for."""
        if kind != "none" and not times.completed:
            raise UserError(
                f"the trace has no completions, so it does not show which request a {self._word} waited for; "
                "choose dependencies none"
            )

    @property
    def _word(self) -> str:
        return {"process": "process", "cpu": "CPU", "trace": "request"}[self._kind]

    def of(self, requests: pa.RecordBatch, batch: Batch, record: Ints) -> tuple[Ints, Ints]:
        """Return each request's dependency (a record or NONE) and the ns since it ended.

        `requests` and `batch` hold the same requests; `record` is the index of each in the schedule.
        """
        if self._kind == "none":
            return np.full(batch.rows, NONE), np.zeros(batch.rows, np.int64)
        stream, known = self._streams(requests, batch)
        self._known |= bool(known.any())
        after, think_ns, self._waiting = compiled.last_completions(
            self._waiting, (stream, batch.complete_ns, record), known, batch.queue_ns, NONE
        )
        return after, think_ns

    def finish(self) -> None:
        """Raise UserError when the trace names no stream for any request."""
        if self._kind != "none" and not self._known:
            raise UserError(
                f"the trace does not record the {self._word} of any request, so dependencies are unknown; "
                "choose other dependencies"
            )

    def _streams(self, requests: pa.RecordBatch, batch: Batch) -> tuple[Ints, Flags]:
        """Return a number for each request's stream, and whether the trace records it."""
        if self._kind == "trace":
            return np.zeros(batch.rows, np.int64), np.ones(batch.rows, np.bool_)
        if self._kind == "cpu":
            cpu = batch.ints("cpu")
            return cpu, cpu >= 0
        column, pid = requests.column("process"), batch.ints("pid")
        names = column.dictionary.to_pylist() or [""]
        codes = np.array([self._names.setdefault(name, len(self._names)) for name in names], np.int64)
        named = np.array([bool(name) for name in names])
        index = column.indices.to_numpy(zero_copy_only=False)
        return (codes[index] << 32) + pid, named[index] | (pid >= 0)
