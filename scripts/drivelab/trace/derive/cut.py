"""Cut a trace to the requests queued within a time span, and shorten its idle gaps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from drivelab.core.errors import UserError
from drivelab.trace.derive.choice import show_ns
from drivelab.trace.derive.groups import TIMES, DispatchGroups, added, moment, unix_ns
from drivelab.trace.derive.output import follows_the_clock
from drivelab.trace.parquet_schema import TraceFile
from drivelab.trace.statistics.batch import UNKNOWN, Batch, resolution_ns


class Cut:
    """Keep requests queued in [from_ns, to_ns) whole; times count from `from_ns`.

    Raises UserError unless `from_ns` is before `to_ns`.
    """

    name = "cut"

    def __init__(self, from_ns: int, to_ns: int | None) -> None:
        if to_ns is not None and from_ns >= to_ns:
            raise UserError(f"from {show_ns(from_ns)} to {show_ns(to_ns)} is empty; make 'to' later than 'from'")
        self.from_ns, self.to_ns = from_ns, to_ns
        self._groups = DispatchGroups()
        self._before = self._after = self._missing = self._unknown = self._open = 0
        self._last_ns = 0

    def begin(self, trace: TraceFile, path: Path) -> None:
        pass

    def apply(self, requests: pa.RecordBatch) -> pa.RecordBatch:
        batch = Batch(requests)
        complete_ns = batch.ints("complete_ns")
        before = batch.queue_ns < self.from_ns
        kept = ~before
        if self.to_ns is not None:
            kept &= batch.queue_ns < self.to_ns
            self._open += int((kept & (complete_ns > self.to_ns)).sum())
        self._before += int(before.sum())
        self._after += int((~kept & ~before).sum())
        self._missing += int((before & (complete_ns > self.from_ns)).sum())
        self._unknown += int((before & (complete_ns == UNKNOWN)).sum())
        self._groups.add(batch, kept)
        self._last_ns = int(batch.queue_ns[-1])
        places = np.flatnonzero(kept)
        # Rows are in time order, so the kept rows of a batch are contiguous.
        piece = requests.slice(int(places[0]), places.size) if places.size else requests.slice(0, 0)
        return added(piece, TIMES, -self.from_ns)

    def facts(self) -> dict[str, Any]:
        """Return parameters and counts.

        `missing_in_flight`: requests queued before the cut but completed in it; they are missing.
        """
        return {
            "from_ns": self.from_ns,
            "to_ns": self.to_ns,
            "dropped": {"before": self._before, "after": self._after},
            "missing_in_flight": self._missing,
            "dropped_without_completion": self._unknown,
            "in_flight_at_end": self._open,
            "dispatches_cut_apart": self._groups.cut_apart,
        }

    def changes(self, provenance: Mapping[str, Any]) -> dict[str, Any]:
        begin = provenance.get("first_event")
        if not begin or not self.from_ns:
            return {}
        try:
            known = follows_the_clock(provenance)
            return {"first_event": moment(unix_ns(begin) + self.from_ns) if known else None}
        except ValueError:
            return {"first_event": None}

    def nothing(self) -> str:
        return f"none was queued between the given times, and the last at {show_ns(self._last_ns)}"


IN_FLIGHT, ARRIVALS, MIXED = "nothing in flight", "no arrival", "nothing known to be in flight"


class DropIdle:
    """Shorten gaps longer than `above_ns` to `keep_ns` (default: `above_ns`).

    Later requests move up. A gap is a time with nothing in flight, from the start of the trace. A request without a
    completion ends at its last known event, so in a trace without completions a gap is a time without arrivals. A gap
    never lies within a request, so latencies and overlaps do not change.

    Raises UserError when `keep_ns` exceeds `above_ns`, or `above_ns` is below the time resolution of the trace.
    """

    name = "drop-idle"

    def __init__(self, above_ns: int, keep_ns: int | None = None) -> None:
        keep_ns = above_ns if keep_ns is None else keep_ns
        if keep_ns > above_ns:
            raise UserError(
                f"keeping {show_ns(keep_ns)} of gaps above {show_ns(above_ns)} would lengthen some gaps; keep less"
            )
        self.above_ns, self.keep_ns = above_ns, keep_ns
        self._reach_ns = 0
        self._removed_ns = self._longest_ns = 0
        self._gaps = self._rows = self._unknown = 0

    def begin(self, trace: TraceFile, path: Path) -> None:
        resolution = resolution_ns(trace.provenance)
        if resolution > 1 and self.above_ns < resolution:
            raise UserError(
                f"{path}: its times have a resolution of {show_ns(resolution)}, so shorter gaps are unknown; "
                "give a longer limit"
            )

    def apply(self, requests: pa.RecordBatch) -> pa.RecordBatch:
        batch = Batch(requests)
        complete_ns = batch.ints("complete_ns")
        end_ns = np.maximum(np.maximum(batch.queue_ns, batch.ints("dispatch_ns")), complete_ns)
        reach_ns = np.maximum.accumulate(np.concatenate([[self._reach_ns], end_ns]))
        gap_ns = batch.queue_ns - reach_ns[:-1]
        long = gap_ns > self.above_ns
        shift_ns = self._removed_ns + np.cumsum(np.where(long, gap_ns - self.keep_ns, 0))
        self._reach_ns, self._removed_ns = int(reach_ns[-1]), int(shift_ns[-1])
        self._gaps += int(long.sum())
        self._longest_ns = max(self._longest_ns, int(gap_ns[long].max(initial=0)))
        self._rows += batch.rows
        self._unknown += int((complete_ns == UNKNOWN).sum())
        return added(requests, TIMES, -shift_ns) if self._removed_ns else requests

    def facts(self) -> dict[str, Any]:
        basis = IN_FLIGHT if not self._unknown else ARRIVALS if self._unknown == self._rows else MIXED
        return {
            "above_ns": self.above_ns,
            "keep_ns": self.keep_ns,
            "basis": basis,
            "without_completion": self._unknown,
            "gaps": self._gaps,
            "removed_ns": self._removed_ns,
            "longest_gap_ns": self._longest_ns,
        }

    def changes(self, provenance: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    def nothing(self) -> str:
        return "it has no request"
