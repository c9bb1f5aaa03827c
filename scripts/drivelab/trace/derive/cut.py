"""Cut a trace to the requests queued within a time span."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from drivelab.errors import UserError
from drivelab.trace.derive.clock import moment, unix_ns
from drivelab.trace.derive.columns import TIMES, added
from drivelab.trace.derive.groups import DispatchGroups
from drivelab.trace.derive.lineage import follows_the_clock
from drivelab.trace.derive.values import show_ns
from drivelab.trace.schema import TraceFile
from drivelab.trace.statistics.batch import UNKNOWN, Batch


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
