"""Sort rows of a file by time, within a bounded window."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from drivelab.errors import UserError
from drivelab.trace.formats.common.model import Format, Whole, joined

WINDOW_ROWS = 1 << 20
"""A row may be this many rows late."""
PIECE_ROWS = 1 << 16


class Sorter:
    """Sort batches in file order by their column `time`.

    Equal times keep the file's order. Sorted batches pass unchanged. A late row is merged only with the batches that
    have later times, so small disorder costs little.
    """

    def __init__(self, path: Path, layout: Format, unit: str, window_rows: int = WINDOW_ROWS) -> None:
        self._path = path
        self._tick_ns = layout.tick_ns
        self._unit = unit
        self._window = window_rows
        self._waiting: deque[pa.RecordBatch] = deque()
        self._rows = 0
        self._latest: int | None = None
        self._released: int | None = None
        self.out_of_order = 0
        """Rows that followed a row with a later time."""

    def push(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Add a batch; yield batches older than the window.

        Raises UserError for a row older than the rows already released.
        """
        if not batch.num_rows:
            return
        times = _times(batch)
        so_far = np.maximum.accumulate(times)
        if self._latest is not None:
            so_far = np.maximum(so_far, self._latest)
        self.out_of_order += int(np.count_nonzero(times < so_far))
        self._latest = int(so_far[-1])
        if self._released is not None and int(times.min()) < self._released:
            self._refuse(batch, times)
        self._insert(_sorted(batch, times))
        while self._waiting and self._rows - self._waiting[0].num_rows >= self._window:
            yield self._release()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the remaining batches."""
        while self._waiting:
            yield self._release()

    def _insert(self, batch: pa.RecordBatch) -> None:
        self._rows += batch.num_rows
        first = int(_times(batch)[0])
        affected = [batch]
        while self._waiting and int(_times(self._waiting[-1])[-1]) > first:
            affected.append(self._waiting.pop())
        if len(affected) > 1:
            merged = joined(affected[::-1])
            batch = _sorted(merged, _times(merged))
        for begin in range(0, batch.num_rows, PIECE_ROWS):
            self._waiting.append(batch.slice(begin, PIECE_ROWS))

    def _release(self) -> pa.RecordBatch:
        batch = self._waiting.popleft()
        self._rows -= batch.num_rows
        self._released = int(_times(batch)[-1])
        return batch

    def _refuse(self, batch: pa.RecordBatch, times: Whole) -> None:
        assert self._released is not None
        late = int(np.argmax(times < self._released))
        seconds = (self._released - int(times[late])) * self._tick_ns / 1e9
        raise UserError(
            f"{self._path}: {self._unit} {batch['line'][late]} is {seconds:.9g} s older than a row more than "
            f"{self._window} rows before it; sort the file by its time column first"
        )


def _times(batch: pa.RecordBatch) -> Any:
    return batch["time"].to_numpy()


def _sorted(batch: pa.RecordBatch, times: Whole) -> pa.RecordBatch:
    if not (times[1:] < times[:-1]).any():
        return batch
    return batch.take(pa.array(np.argsort(times, kind="stable")))
