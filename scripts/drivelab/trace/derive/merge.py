"""Requests of several traces as one, in the order of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from drivelab.errors import UserError
from drivelab.trace.derive.columns import ordered, queue_ns
from drivelab.trace.derive.merge_sources import look, merged_provenance, place_offsets, place_times
from drivelab.trace.derive.output import refuse_nothing, written
from drivelab.trace.outputs import refuse_source
from drivelab.trace.schema import BATCH_ROWS, open_trace
from drivelab.trace.statistics.batch import Ints

STARTS = ("start", "wall-clock")
PLACES = ("same", "side-by-side")
MOST = 32
"""Traces at a time: a batch of each is held in memory."""


def merge(paths: Sequence[Path], output: Path, *, at: str = "start", place: str = "same") -> dict[str, Any]:
    """Merge traces in bounded memory; returns the entry of `derived`.

    `at`: `start` lets all begin at the same time, `wall-clock` leaves them as far apart as they were, by their first
    events. `place`: `same` leaves offsets as they are, `side-by-side` puts each trace behind the capacity of those
    before. Requests of equal time stay in the order of `paths`.

    Raises UserError when a trace does not suit, the output is one of them, or nothing is in them.
    """
    if at not in STARTS or place not in PLACES:
        raise ValueError(f"there is no {at!r} or no {place!r}")
    if not 2 <= len(paths) <= MOST:
        raise UserError(f"{len(paths)} traces cannot be merged in one go; give two to {MOST}")
    refuse_source(output, paths)
    with ExitStack() as stack:
        files = [stack.enter_context(open_trace(path)) for path in paths]
        sources = [look(path, file) for path, file in zip(paths, files, strict=True)]
        place_times(sources, at)
        place_offsets(sources, place)
        batches = [
            pieces(map(source.moved, ordered(file.batches(), source.path)), max(BATCH_ROWS // len(sources), 1))
            for source, file in zip(sources, files, strict=True)
        ]
        with written(output, paths) as gatherer:
            for table in merged(batches):
                gatherer.add(table)
            refuse_nothing(gatherer.rows, ", ".join(map(str, paths)), "as they hold no request")
            provenance = merged_provenance(sources, at=at, place=place, requests=gatherer.rows)
            gatherer.finish(provenance)
    return dict(provenance["derived"][-1])


def pieces(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Batches of at most `rows` rows: what is merged at a time is copied, so that should not grow with the traces."""
    for batch in batches:
        for first in range(0, batch.num_rows, rows):
            yield batch.slice(first, rows)


def merged(sources: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[pa.Table]:
    """Rows of all sources in the order of `queue_ns`, of equal ones in the order of the sources.

    The result does not depend on how the sources are cut into batches. Memory: a batch or two of each source.
    """
    waiting = [_Waiting(source) for source in sources]
    while True:
        for one in waiting:
            one.fill()
        open_ends = [(one.last_ns, number) for number, one in enumerate(waiting) if not one.ended]
        # What is still to come of a source sorts behind its last row; so far all rows are safe.
        bound = min(open_ends) if open_ends else None
        parts = [one.take(bound, number) for number, one in enumerate(waiting)]
        parts = [part for part in parts if part.num_rows]
        if parts:
            table = pa.concat_tables(map(_table, parts))
            order = np.argsort(np.concatenate([queue_ns(part) for part in parts]), kind="stable")
            yield table.combine_chunks().take(pa.array(order))
        if bound is None:
            return


def _table(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


class _Waiting:
    """Rows of one source that are read and not yet merged."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._rows: pa.RecordBatch | None = None
        self._times: Ints = np.zeros(0, np.int64)
        self.ended = False

    @property
    def last_ns(self) -> int:
        """Of rows that are there."""
        return int(self._times[-1])

    def fill(self) -> None:
        """Read on if there is nothing left."""
        if not self.ended and not self._times.size:
            self._rows = next(self._batches, None)
            self.ended = self._rows is None
            self._times = np.zeros(0, np.int64) if self._rows is None else queue_ns(self._rows)

    def take(self, bound: tuple[int, int] | None, number: int) -> pa.RecordBatch:
        """Rows that sort no later than `bound`, a time and the number of a source; this one is `number`."""
        if self._rows is None:
            return _NOTHING
        count = self._times.size
        if bound is not None:
            count = int(np.searchsorted(self._times, bound[0], "right" if number <= bound[1] else "left"))
        part, self._rows, self._times = self._rows.slice(0, count), self._rows.slice(count), self._times[count:]
        return part


_NOTHING = pa.RecordBatch.from_pylist([], pa.schema([]))
