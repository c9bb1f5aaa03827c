"""Sort rows of a file by time, within a bounded window."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from drivelab.core.errors import UserError
from drivelab.core.units import some
from drivelab.trace.formats.common.trace_format import Format, Whole, joined

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


SHOWN = 10
MOST_VOLUMES = 1 << 20


class VolumeFilter:
    """Select the rows of the chosen volumes, or of the only one."""

    def __init__(self, path: Path, chosen: Sequence[str]) -> None:
        self._path = path
        self._chosen = tuple(chosen)
        self._seen: dict[str, None] = {}
        self.others = 0
        """Rows of other volumes."""

    @property
    def name(self) -> str:
        """The selected volumes; empty if the format has no volumes."""
        return ", ".join(self._chosen or list(self._seen)[:1])

    @property
    def several(self) -> bool:
        """Whether several volumes are chosen."""
        return len(self._chosen) > 1

    def select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of the volumes; the column `volume` is left only if they are several.

        Raises UserError when a volume must be chosen, or the format has no volumes.
        """
        if "volume" not in batch.schema.names:
            if self._chosen:
                raise UserError(f"{self._path}: its format has no volumes; remove --volume {self._chosen[0]}")
            return batch
        volumes = batch["volume"]
        names = _present(volumes)
        self._seen |= dict.fromkeys(name for name in names.values() if len(self._seen) <= MOST_VOLUMES)
        if not self._chosen and len(self._seen) > 1:
            raise UserError(
                f"{self._path}: has several volumes ({_shown(self._seen)}); choose one with --volume; several make "
                "one trace for one replay; 'drivelab trace volumes' lists them"
            )
        rest = batch if self.several else batch.drop_columns(["volume"])
        if not self._chosen or set(names.values()) <= set(self._chosen):
            return rest
        places = [index for index, name in names.items() if name in self._chosen]
        mask = np.isin(volumes.indices.to_numpy(), places)
        chosen = rest.filter(pa.array(mask))
        self.others += batch.num_rows - chosen.num_rows
        return chosen

    def refuse_nothing(self) -> None:
        """Raise UserError when the file does not have a chosen volume."""
        for name in self._chosen if self._seen else ():
            if name not in self._seen:
                raise UserError(
                    f"{self._path}: has no request of volume '{name}', only of {_shown(self._seen)}; "
                    "'drivelab trace volumes' lists them"
                )


def count_rows(batch: pa.RecordBatch) -> dict[str, int]:
    """Count the rows of each volume; the name is empty without volumes."""
    if "volume" not in batch.schema.names:
        return {"": batch.num_rows} if batch.num_rows else {}
    volumes = batch["volume"]
    counts = np.bincount(volumes.indices.to_numpy(), minlength=len(volumes.dictionary)).tolist()
    return {name: count for name, count in zip(volumes.dictionary.to_pylist(), counts, strict=True) if count}


def _present(volumes: pa.DictionaryArray) -> dict[int, str]:
    """Return the names of volumes with rows, by their place in the dictionary."""
    counts = np.bincount(volumes.indices.to_numpy(), minlength=len(volumes.dictionary))
    return {int(place): volumes.dictionary[int(place)].as_py() for place in np.flatnonzero(counts)}


def _shown(names: dict[str, None]) -> str:
    return some(list(names), SHOWN)
