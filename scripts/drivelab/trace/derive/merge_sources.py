"""Place traces that are merged: their times, their offsets, and their volumes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from drivelab.core.errors import UserError
from drivelab.trace.decode import FIRST_EVENT_MONOTONIC
from drivelab.trace.derive.groups import TIMES, added, unix_ns
from drivelab.trace.derive.output import follows_the_clock, source_facts
from drivelab.trace.parquet_schema import VOLUME, TraceFile
from drivelab.trace.statistics.batch import UNKNOWN, Batch

DEVICE = ("capacity_bytes", "device", "volume", "logical_block_bytes")
"""Keys of the provenance that describe the traced device."""
_ROUNDING_NS = 2_000_000
"""A start in ms and the exact one differ by less."""


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
    volume: str | None = None
    """Name of the source's volume in a merged trace of several."""

    def moved(self, requests: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch shifted for the merged trace; an empty flush keeps its offset."""
        requests = added(requests, TIMES, self.shift_ns)
        requests = added(requests, ["dispatch_id"], self.shift_dispatch_id)
        if self.volume is not None:
            names = pa.DictionaryArray.from_arrays(np.zeros(requests.num_rows, np.int32), [self.volume])
            requests = requests.append_column(VOLUME, names)
        if not self.shift_bytes:
            return requests
        lengths = np.asarray(requests.column("length_bytes").to_numpy(zero_copy_only=False))
        return added(requests, ["offset_bytes"], np.where(lengths > 0, self.shift_bytes, 0))

    def facts(self) -> dict[str, Any]:
        """Return facts for the entry of `derived`, with earlier derivations."""
        facts = source_facts(self.path, self.provenance, self.rows)
        facts |= {key: self.provenance[key] for key in DEVICE if key in self.provenance}
        if self.provenance.get("derived"):
            facts["derived"] = self.provenance["derived"]
        moved = {"shift_ns": self.shift_ns, "shift_bytes": self.shift_bytes}
        named = {} if self.volume is None else {"as_volume": self.volume}
        return {**facts, **moved, "shift_dispatch_id": self.shift_dispatch_id, **named}


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
        begins = [first_event_ns(source) for source in sources]
        for source, begin_ns in zip(sources, begins, strict=True):
            source.shift_ns = begin_ns - min(begins)
    following: int | None = None
    for source in sources:
        if source.ids is not None:
            source.shift_dispatch_id = 0 if following is None else following - source.ids[0]
            following = source.ids[1] + source.shift_dispatch_id + 1


def first_event_ns(source: Source) -> int:
    """Return the time of the first event since 1970; raise UserError if it is unknown."""
    begin = source.provenance.get("first_event")
    if not begin:
        raise UserError(f"{source.path}: does not record its start, so 'wall-clock' cannot place it; use --at start")
    if not follows_the_clock(source.provenance):
        raise UserError(
            f"{source.path}: idle time was removed, so it no longer follows the wall clock; use --at start, "
            "or merge first and drop idle time afterwards"
        )
    try:
        begin_ns = unix_ns(begin)
    except ValueError:
        raise UserError(f"{source.path}: its start '{begin}' is not a date and time; use --at start") from None
    monotonic_ns, offset_ns = (source.provenance.get(key) for key in (FIRST_EVENT_MONOTONIC, "realtime_offset_ns"))
    if isinstance(monotonic_ns, int) and isinstance(offset_ns, int) and not source.provenance.get("derived"):
        exact_ns = monotonic_ns + offset_ns  # a capture has `first_event` in ms only
        return exact_ns if abs(exact_ns - begin_ns) < _ROUNDING_NS else begin_ns
    return begin_ns


def name_volumes(sources: Sequence[Source]) -> None:
    """Let each source be a volume with the name of its file; raise UserError if two have the same."""
    for source in sources:
        source.volume = source.path.stem
        if any(other is not source and other.volume == source.volume for other in sources):
            raise UserError(
                f"{source.path}: another trace is also called '{source.volume}', so their volumes would have the same "
                "name; rename one of the files"
            )


def place_offsets(sources: Sequence[Source], place: str) -> None:
    """Set each source's offset on the device. Raises UserError for `side-by-side` if a capacity is unknown."""
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
    devices = [tuple(source.provenance.get(key) for key in DEVICE) for source in sources]
    return len(set(devices)) > 1
