"""Merge several traces into one, in time order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from drivelab.core.errors import UserError
from drivelab.trace.derive.groups import moment, ordered, queue_ns
from drivelab.trace.derive.merge_sources import (
    DEVICE,
    Source,
    different_devices,
    first_event_ns,
    look,
    name_volumes,
    place_offsets,
    place_times,
)
from drivelab.trace.derive.output import OF_THE_SOURCE, refuse_nothing, written
from drivelab.trace.parquet_schema import (
    BATCH_ROWS,
    BEGINS,
    ISSUE,
    REQUESTS,
    REQUESTS_OF_VOLUMES,
    VOLUMES_KEY,
    has_queue_times,
    open_trace,
)
from drivelab.trace.records import refuse_source
from drivelab.trace.statistics.batch import Ints, resolution_ns


def merged_provenance(sources: Sequence[Source], *, at: str, place: str, requests: int) -> dict[str, Any]:
    """Return the merged trace's provenance.

    It has the values common to all sources, sums of losses, and an entry of `derived` with the facts of each source.
    """
    common = {
        key: value
        for key, value in sources[0].provenance.items()
        if key not in (*OF_THE_SOURCE, "format", "derived", "first_event")
        and all(source.provenance.get(key) == value for source in sources)
    }
    capacities = [source.provenance.get("capacity_bytes") for source in sources]
    known = [capacity for capacity in capacities if capacity]
    apart = place == "side-by-side"
    changes = {
        "title": "merged: " + ", ".join(dict.fromkeys(str(_title(source)) for source in sources)),
        "capacity_bytes": (sum(known) if apart else max(known)) if len(known) == len(sources) else None,
        "lost": _sums(sources, "lost"),
        "unmatched": _sums(sources, "unmatched"),
        "malformed": sum(int(source.provenance.get("malformed") or 0) for source in sources) or None,
        "time_resolution_ns": _coarsest(sources),
        BEGINS: None if all(has_queue_times(source.provenance) for source in sources) else ISSUE,
        "first_event": moment(min(map(first_event_ns, sources))) if at == "wall-clock" else None,
    }
    volumes = {source.volume: source.rows for source in sources if source.volume is not None}
    if volumes:
        changes |= {VOLUMES_KEY: volumes, "capacity_bytes": None}
        common = {key: value for key, value in common.items() if key not in DEVICE}
    overlapping = place == "same" and different_devices(sources)
    entry = {
        "step": "merge",
        "at": at,
        "place": place,
        "different_devices_share_offsets": overlapping,
        "requests": requests,
        "sources": [source.facts() for source in sources],
    }
    merged = {key: value for key, value in {**common, **changes}.items() if value is not None}
    return {**merged, "derived": [entry]}


def _title(source: Source) -> Any:
    return source.provenance.get("title") or source.provenance.get("name") or source.path.stem


def _sums(sources: Sequence[Source], key: str) -> dict[str, int]:
    total: Counter[str] = Counter()
    for source in sources:
        total.update(dict(source.provenance.get(key) or {}))
    return dict(sorted(total.items()))


def _coarsest(sources: Sequence[Source]) -> int | None:
    resolution = max(resolution_ns(source.provenance) for source in sources)
    return resolution if resolution > 1 else None


STARTS = ("start", "wall-clock")
PLACES = ("same", "side-by-side", "volumes")
MOST = 32
"""Most traces per merge: a batch of each is held in memory."""


def merge(paths: Sequence[Path], output: Path, *, at: str | None = None, place: str = "same") -> dict[str, Any]:
    """Merge traces in bounded memory; return the entry of `derived`.

    `at`: with `start` all begin at the same time; `wall-clock` keeps their original distance, by their first events.
    `place`: `same` keeps offsets; `side-by-side` puts each trace after the capacity of the previous ones; `volumes`
    keeps each as a volume. Without `at`, volumes keep their distance, and other traces start together. Requests
    at equal times stay in the order of `paths`.

    Raises UserError when a trace is unsuitable, the output is a source, or all are empty.
    """
    at = at or ("wall-clock" if place == "volumes" else "start")
    if at not in STARTS or place not in PLACES:
        raise ValueError(f"{at!r} or {place!r} is unknown")
    if not 2 <= len(paths) <= MOST:
        raise UserError(f"{len(paths)} traces cannot be merged at once; give 2 to {MOST}")
    refuse_source(output, paths)
    with ExitStack() as stack:
        files = [stack.enter_context(open_trace(path)) for path in paths]
        sources = [look(path, file) for path, file in zip(paths, files, strict=True)]
        place_times(sources, at)
        place_offsets(sources, place)
        if place == "volumes":
            name_volumes(sources)
        batches = [
            pieces(map(source.moved, ordered(file.batches(), source.path)), max(BATCH_ROWS // len(sources), 1))
            for source, file in zip(sources, files, strict=True)
        ]
        schema = REQUESTS_OF_VOLUMES if place == "volumes" else REQUESTS
        with written(output, paths, schema) as gatherer:
            for table in merged(batches):
                gatherer.add(table)
            refuse_nothing(gatherer.rows, ", ".join(map(str, paths)), "the traces have no request")
            provenance = merged_provenance(sources, at=at, place=place, requests=gatherer.rows)
            gatherer.finish(provenance)
    return dict(provenance["derived"][-1])


def pieces(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of at most `rows` rows.

    The merge copies its rows, so their number must not grow with the traces.
    """
    for batch in batches:
        for first in range(0, batch.num_rows, rows):
            yield batch.slice(first, rows)


def merged(sources: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[pa.Table]:
    """Yield the rows of all sources in `queue_ns` order, ties in source order.

    The result does not depend on the sources' batches. Memory: a batch or two of each source.
    """
    waiting = [_Waiting(batches) for batches in sources]
    while True:
        for source in waiting:
            source.fill()
        open_ends = [(source.last_ns, number) for number, source in enumerate(waiting) if not source.ended]
        # Later rows of a source sort after its last row, so all rows up to there are safe.
        bound = min(open_ends) if open_ends else None
        parts = [source.take(bound, number) for number, source in enumerate(waiting)]
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
    """Rows of one source that are read but not yet merged."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._rows: pa.RecordBatch | None = None
        self._times: Ints = np.zeros(0, np.int64)
        self.ended = False

    @property
    def last_ns(self) -> int:
        """Time of the last waiting row."""
        return int(self._times[-1])

    def fill(self) -> None:
        """Read the next batch if none is left."""
        if not self.ended and not self._times.size:
            self._rows = next(self._batches, None)
            self.ended = self._rows is None
            self._times = np.zeros(0, np.int64) if self._rows is None else queue_ns(self._rows)

    def take(self, bound: tuple[int, int] | None, number: int) -> pa.RecordBatch:
        """Take rows up to `bound` (time, source number); this source is `number`."""
        if self._rows is None:
            return _NOTHING
        count = self._times.size
        if bound is not None:
            count = int(np.searchsorted(self._times, bound[0], "right" if number <= bound[1] else "left"))
        part, self._rows, self._times = self._rows.slice(0, count), self._rows.slice(count), self._times[count:]
        return part


_NOTHING = pa.RecordBatch.from_pylist([], pa.schema([]))
