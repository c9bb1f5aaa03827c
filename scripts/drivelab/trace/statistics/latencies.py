"""Measure times between events of a request: Q2C, Q2D and D2C as in btt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from drivelab.trace.parquet_schema import FLAGS, OPERATIONS
from drivelab.trace.statistics.batch import UNKNOWN, Batch, Flags, Ints
from drivelab.trace.statistics.bins import LogHistogram

PHASES = ("Q2C", "Q2D", "D2C")
"""Queued to completed, queued to dispatched, dispatched to completed."""


class Latency:
    """Histograms by operation and phase, without requests that lack an event."""

    def __init__(self, phases: Sequence[str] = PHASES) -> None:
        self.histograms = {(name, phase): LogHistogram() for name in OPERATIONS for phase in PHASES}
        self._known = phases

    def add(self, batch: Batch) -> None:
        times = {"Q": batch.queue_ns, "D": batch.dispatch_ns, "C": batch.complete_ns}
        for phase in self._known:
            begin, end = times[phase[0]], times[phase[2]]
            known = (begin != UNKNOWN) & (end != UNKNOWN)
            for number, operation in enumerate(OPERATIONS):
                chosen = known & (batch.operation == number)
                self.histograms[operation, phase].add((end - begin)[chosen])

    def frame(self) -> pd.DataFrame:
        """Return a row for each non-empty bin."""
        rows = [
            (operation, phase, *filled_bin)
            for (operation, phase), histogram in self.histograms.items()
            for filled_bin in histogram.bins()
        ]
        return pd.DataFrame(rows, columns=["operation", "phase", "low_ns", "high_ns", "requests"])


COLUMNS = (*FLAGS, "errors", "split", "requeued", "without_dispatch", "without_completion")


class Operations:
    """Counts by operation, batch by batch."""

    def __init__(self) -> None:
        self.counts: dict[str, Ints] = {name: np.zeros(len(OPERATIONS), np.int64) for name in COLUMNS}
        self.backwards = 0
        self.errors: dict[int, int] = {}

    def add(self, batch: Batch) -> None:
        error = batch.ints("error")
        selections: dict[str, Flags] = {
            **{name: batch.flag(name) for name in FLAGS},
            "errors": error != 0,
            "split": batch.ints("pieces") > 1,
            "requeued": batch.ints("requeues") > 0,
            "without_dispatch": batch.dispatch_ns == UNKNOWN,
            "without_completion": batch.complete_ns == UNKNOWN,
        }
        for name, chosen in selections.items():
            self.counts[name] += np.bincount(batch.operation[chosen], minlength=len(OPERATIONS))
        self.backwards += batch.backwards
        for code, count in zip(*np.unique(error[error != 0], return_counts=True), strict=True):
            self.errors[int(code)] = self.errors.get(int(code), 0) + int(count)

    def total(self, name: str) -> int:
        return int(self.counts[name].sum())


MOST = 1 << 16
_TAG_BITS = 4


class LengthCounts:
    """Requests by operation, length and sequentiality.

    Lengths are exact for up to MOST kinds. Beyond, they are rounded up to multiples of `step_bytes`, the smallest
    sufficient power of two. The order of the requests does not matter.
    """

    def __init__(self) -> None:
        self.step_bytes = 1
        self._keys = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)

    def add(self, batch: Batch, sequential: Flags) -> None:
        keys, counts = np.unique(self.keys(batch, sequential), return_counts=True)
        self._merge(keys, counts)
        while self._keys.size > MOST:
            self.step_bytes *= 2
            keys, counts = self._keys, self._counts
            self._keys, self._counts = keys[:0], counts[:0]
            self._merge(self._coarse(keys >> _TAG_BITS) << _TAG_BITS | keys & 15, counts)

    def keys(self, batch: Batch, sequential: Flags) -> Ints:
        """Return a number for each request's kind; changes with `step_bytes`."""
        return self._coarse(batch.length_bytes) << _TAG_BITS | batch.operation << 1 | sequential

    def frame(self) -> pd.DataFrame:
        """Return a row for each kind, shortest first.

        The columns are key, operation, length_bytes, sequential and requests.
        """
        return pd.DataFrame(
            {
                "key": self._keys,
                "operation": np.array(OPERATIONS, object)[self._keys >> 1 & 7],
                "length_bytes": self._keys >> _TAG_BITS,
                "sequential": (self._keys & 1).astype(bool),
                "requests": self._counts,
            }
        )

    def _coarse(self, lengths: Ints) -> Ints:
        return lengths if self.step_bytes == 1 else -(-lengths // self.step_bytes) * self.step_bytes

    def _merge(self, keys: Ints, counts: Ints) -> None:
        self._keys, place = np.unique(np.concatenate([self._keys, keys]), return_inverse=True)
        merged = np.zeros(self._keys.size, np.int64)
        np.add.at(merged, place, np.concatenate([self._counts, counts]))
        self._counts = merged
