"""Merge several traces into one, in time order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from drivelab.core.errors import UserError
from drivelab.trace.derive.groups import TIMES, added, moment, ordered, queue_ns, unix_ns
from drivelab.trace.derive.output import OF_THE_SOURCE, follows_the_clock, refuse_nothing, source_facts, written
from drivelab.trace.parquet_schema import BATCH_ROWS, BEGINS, ISSUE, TraceFile, has_queue_times, open_trace
from drivelab.trace.records import refuse_source
from drivelab.trace.statistics.batch import UNKNOWN, Batch, Ints, resolution_ns

_DEVICE = ("capacity_bytes", "device", "volume", "logical_block_bytes")


@dataclass
class Source:
    """One of the merged traces, and its shifts."""

    path: Path
    provenance: dict[str, Any]
    rows: int
    end_bytes: int
    """End of the last byte that a request touches."""
    ids: tuple[int, int] | None
    """Smallest and largest dispatch number."""
    shift_ns: int = 0
    shift_bytes: int = 0
    shift_dispatch_id: int = 0

    def moved(self, requests: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch shifted for the merged trace; an empty flush keeps its offset."""
        requests = added(requests, TIMES, self.shift_ns)
        requests = added(requests, ["dispatch_id"], self.shift_dispatch_id)
        if not self.shift_bytes:
            return requests
        lengths = np.asarray(requests.column("length_bytes").to_numpy(zero_copy_only=False))
        return added(requests, ["offset_bytes"], np.where(lengths > 0, self.shift_bytes, 0))

    def facts(self) -> dict[str, Any]:
        """Return facts for the entry of `derived`, with earlier derivations."""
        facts = source_facts(self.path, self.provenance, self.rows)
        facts |= {key: self.provenance[key] for key in _DEVICE if key in self.provenance}
        if self.provenance.get("derived"):
            facts["derived"] = self.provenance["derived"]
        moved = {"shift_ns": self.shift_ns, "shift_bytes": self.shift_bytes}
        return {**facts, **moved, "shift_dispatch_id": self.shift_dispatch_id}


def look(path: Path, file: TraceFile) -> Source:
    """Survey a trace before the merge, in one pass over four columns."""
    source = Source(path, file.provenance, file.rows, 0, None)
    for requests in file.batches(["queue_ns", "offset_bytes", "length_bytes", "dispatch_id"]):
        if not requests.num_rows:
            continue
        batch = Batch(requests)
        source.end_bytes = max(source.end_bytes, int(batch.end_bytes.max()))
        ids = batch.ints("dispatch_id")
        ids = ids[ids != UNKNOWN]
        if ids.size:
            least, largest = int(ids.min()), int(ids.max())
            known = source.ids or (least, largest)
            source.ids = min(known[0], least), max(known[1], largest)
    return source


def place_times(sources: Sequence[Source], at: str) -> None:
    """Set each source's start time and dispatch numbers.

    Raises UserError when the time of a first event is needed but unknown.
    """
    if at == "wall-clock":
        begins = [_first_event_ns(source) for source in sources]
        for source, begin_ns in zip(sources, begins, strict=True):
            source.shift_ns = begin_ns - min(begins)
    following: int | None = None
    for source in sources:
        if source.ids is not None:
            source.shift_dispatch_id = 0 if following is None else following - source.ids[0]
            following = source.ids[1] + source.shift_dispatch_id + 1


def _first_event_ns(source: Source) -> int:
    begin = source.provenance.get("first_event")
    if not begin:
        raise UserError(f"{source.path}: does not record its start, so 'wall-clock' cannot place it; use --at start")
    if not follows_the_clock(source.provenance):
        raise UserError(
            f"{source.path}: idle time was removed, so it no longer follows the wall clock; use --at start, "
            "or merge first and drop idle time afterwards"
        )
    try:
        return unix_ns(begin)
    except ValueError:
        raise UserError(f"{source.path}: its start '{begin}' is not a date and time; use --at start") from None


def place_offsets(sources: Sequence[Source], place: str) -> None:
    """Set each source's offset on the device.

    Raises UserError for `side-by-side` if a capacity is unknown.
    """
    following = 0
    for source in sources if place == "side-by-side" else ():
        capacity = source.provenance.get("capacity_bytes")
        if not capacity:
            raise UserError(
                f"{source.path}: does not record its device's capacity, so no trace can follow it; use --place same"
            )
        if source.end_bytes > capacity:
            raise UserError(
                f"{source.path}: a request ends at byte {source.end_bytes}, beyond the device's {capacity}; "
                "use --place same, or decode or import the trace again"
            )
        source.shift_bytes = following
        following += capacity


def different_devices(sources: Sequence[Source]) -> bool:
    """Return whether the traces record different devices."""
    devices = [tuple(source.provenance.get(key) for key in _DEVICE) for source in sources]
    return len(set(devices)) > 1


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
        "first_event": moment(min(map(_first_event_ns, sources))) if at == "wall-clock" else None,
    }
    overlapping = not apart and different_devices(sources)
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
PLACES = ("same", "side-by-side")
MOST = 32
"""Most traces per merge: a batch of each is held in memory."""


def merge(paths: Sequence[Path], output: Path, *, at: str = "start", place: str = "same") -> dict[str, Any]:
    """Merge traces in bounded memory; return the entry of `derived`.

    `at`: with `start` all begin at the same time; `wall-clock` keeps their original distance, by their first events.
    `place`: `same` keeps offsets; `side-by-side` puts each trace after the capacity of the previous ones. Requests at
    equal times stay in the order of `paths`.

    Raises UserError when a trace is unsuitable, the output is a source, or all are empty.
    """
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
        batches = [
            pieces(map(source.moved, ordered(file.batches(), source.path)), max(BATCH_ROWS // len(sources), 1))
            for source, file in zip(sources, files, strict=True)
        ]
        with written(output, paths) as gatherer:
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
