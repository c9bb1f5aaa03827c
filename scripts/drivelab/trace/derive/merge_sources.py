"""Traces that are merged: where each goes in time, on the device and among the dispatches, and what is said of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from drivelab.errors import UserError
from drivelab.trace.derive.clock import moment, unix_ns
from drivelab.trace.derive.columns import TIMES, added
from drivelab.trace.derive.lineage import OF_THE_SOURCE, follows_the_clock, source_facts
from drivelab.trace.schema import TraceFile
from drivelab.trace.statistics.batch import UNKNOWN, Batch
from drivelab.trace.statistics.marks import resolution_ns

_DEVICE = ("capacity_bytes", "device", "volume", "logical_block_bytes")


@dataclass
class Source:
    """One of the traces, and by how much it is moved."""

    path: Path
    provenance: dict[str, Any]
    rows: int
    end_bytes: int
    """Behind the last byte that a request touches."""
    ids: tuple[int, int] | None
    """Least and largest number of a dispatch."""
    shift_ns: int = 0
    shift_bytes: int = 0
    shift_dispatch_id: int = 0

    def moved(self, requests: pa.RecordBatch) -> pa.RecordBatch:
        """A batch as it goes into the merged trace; an empty flush is at no place and stays there."""
        requests = added(requests, TIMES, self.shift_ns)
        requests = added(requests, ["dispatch_id"], self.shift_dispatch_id)
        if not self.shift_bytes:
            return requests
        lengths = np.asarray(requests.column("length_bytes").to_numpy(zero_copy_only=False))
        return added(requests, ["offset_bytes"], np.where(lengths > 0, self.shift_bytes, 0))

    def facts(self) -> dict[str, Any]:
        """For the entry of `derived`: also what had been done to it before."""
        facts = source_facts(self.path, self.provenance, self.rows)
        facts |= {key: self.provenance[key] for key in _DEVICE if key in self.provenance}
        if self.provenance.get("derived"):
            facts["derived"] = self.provenance["derived"]
        moved = {"shift_ns": self.shift_ns, "shift_bytes": self.shift_bytes}
        return {**facts, **moved, "shift_dispatch_id": self.shift_dispatch_id}


def look(path: Path, file: TraceFile) -> Source:
    """What has to be known of a trace before it is merged, in one pass over four of its columns."""
    source = Source(path, file.provenance, file.rows, 0, None)
    for one in file.batches(["queue_ns", "offset_bytes", "length_bytes", "dispatch_id"]):
        if not one.num_rows:
            continue
        batch = Batch(one)
        source.end_bytes = max(source.end_bytes, int(batch.end_bytes.max()))
        ids = batch.ints("dispatch_id")
        ids = ids[ids != UNKNOWN]
        if ids.size:
            least, largest = int(ids.min()), int(ids.max())
            known = source.ids or (least, largest)
            source.ids = min(known[0], least), max(known[1], largest)
    return source


def place_times(sources: Sequence[Source], at: str) -> None:
    """Set when each begins, and the numbers of its dispatches; raises UserError when a first event is not known."""
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
        raise UserError(f"{source.path}: does not say when it began, so 'wall-clock' cannot place it; use --at start")
    if not follows_the_clock(source.provenance):
        raise UserError(
            f"{source.path}: had idle time taken out and no longer follows the wall clock; use --at start, "
            "or merge first and drop idle time then"
        )
    try:
        return unix_ns(begin)
    except ValueError:
        raise UserError(f"{source.path}: says it began at '{begin}', which is no time; use --at start") from None


def place_offsets(sources: Sequence[Source], place: str) -> None:
    """Set where each lies on the device; raises UserError when side by side and a capacity is not known."""
    following = 0
    for source in sources if place == "side-by-side" else ():
        capacity = source.provenance.get("capacity_bytes")
        if not capacity:
            raise UserError(
                f"{source.path}: does not say how large its device is, so nothing can be put behind it; "
                "use --place same"
            )
        if source.end_bytes > capacity:
            raise UserError(
                f"{source.path}: has a request up to byte {source.end_bytes} of a device of {capacity}; "
                "use --place same, or decode or import it anew"
            )
        source.shift_bytes = following
        following += capacity


def different_devices(sources: Sequence[Source]) -> bool:
    """Whether the traces say that they are of different devices."""
    said = [tuple(source.provenance.get(key) for key in _DEVICE) for source in sources]
    return len(set(said)) > 1


def merged_provenance(sources: Sequence[Source], *, at: str, place: str, requests: int) -> dict[str, Any]:
    """What all sources agree on, sums of what each has lost, and an entry of `derived` with all that each says."""
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
        "title": "merged: " + ", ".join(dict.fromkeys(str(_called(source)) for source in sources)),
        "capacity_bytes": (sum(known) if apart else max(known)) if len(known) == len(sources) else None,
        "lost": _sums(sources, "lost"),
        "unmatched": _sums(sources, "unmatched"),
        "malformed": sum(int(source.provenance.get("malformed") or 0) for source in sources) or None,
        "time_resolution_ns": _coarsest(sources),
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


def _called(source: Source) -> Any:
    return source.provenance.get("title") or source.provenance.get("name") or source.path.stem


def _sums(sources: Sequence[Source], key: str) -> dict[str, int]:
    total: Counter[str] = Counter()
    for source in sources:
        total.update(dict(source.provenance.get(key) or {}))
    return dict(sorted(total.items()))


def _coarsest(sources: Sequence[Source]) -> int | None:
    resolution = max(resolution_ns(source.provenance) for source in sources)
    return resolution if resolution > 1 else None
