"""Count requests by operation, length and sequentiality, for sizes and streams."""

from __future__ import annotations

import numpy as np
import pandas as pd

from drivelab.trace.schema import OPERATIONS
from drivelab.trace.statistics.batch import Batch, Flags, Ints

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
