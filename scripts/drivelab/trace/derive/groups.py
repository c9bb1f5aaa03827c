"""Follow requests that the block layer merged into one dispatch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drivelab.core.errors import UserError
from drivelab.trace.statistics.batch import UNKNOWN, Batch, Flags, Ints

REMEMBERED = 1 << 18
"""Number of latest dispatches followed. Requests of one dispatch are queued close together, so this is enough."""
_KEPT, _DROPPED = 1, 2


class DispatchGroups:
    """Dispatches of a trace, batch by batch; REMEMBERED bounds the memory."""

    def __init__(self) -> None:
        self._ids = np.zeros(0, np.int64)
        self._seen = np.zeros(0, np.uint8)
        self._apart = self._forgotten = 0
        self.requests = 0
        """Requests with a known dispatch."""

    def add(self, batch: Batch, kept: Flags) -> None:
        """Add a batch; `kept` marks its kept rows, shape (rows,)."""
        ids = batch.ints("dispatch_id")
        known = ids != UNKNOWN
        self.requests += int(known.sum())
        ids = np.concatenate([self._ids, ids[known]])
        seen = np.concatenate([self._seen, np.where(kept[known], _KEPT, _DROPPED).astype(np.uint8)])
        order = np.argsort(ids, kind="stable")
        begins = np.flatnonzero(np.concatenate([[True], np.diff(ids[order]) != 0])) if ids.size else order
        if not begins.size:
            return
        together = np.bitwise_or.reduceat(seen[order], begins)
        by_age = np.argsort(np.maximum.reduceat(order, begins))
        ids, seen = ids[order][begins][by_age], together[by_age]
        forgotten = max(ids.size - REMEMBERED, 0)
        self._apart += int((seen[:forgotten] == _KEPT | _DROPPED).sum())
        self._forgotten += forgotten
        self._ids, self._seen = ids[forgotten:], seen[forgotten:]

    @property
    def merged(self) -> int | None:
        """Requests dispatched as part of another; None if the trace has no dispatches."""
        return self.requests - self._forgotten - self._ids.size if self.requests else None

    @property
    def cut_apart(self) -> int | None:
        """Dispatches only partly kept; None if the trace has no dispatches."""
        return self._apart + int((self._seen == _KEPT | _DROPPED).sum()) if self.requests else None


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def unix_ns(text: str) -> int:
    """Return nanoseconds since 1970 of an ISO 8601 time, by default in UTC. Raises ValueError for other texts."""
    split = re.match(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](\d+))?(.*)$", text.strip())
    if split is None:
        raise ValueError(f"'{text}' is not an ISO 8601 date and time")
    moment = datetime.fromisoformat(split[1] + (split[3] or "+00:00"))
    whole = (moment - _EPOCH) // timedelta(seconds=1)
    return int(whole) * 10**9 + int((split[2] or "").ljust(9, "0")[:9])


def moment(time_ns: int) -> str:
    """Format as ISO 8601 in UTC with three, six or nine decimals, as needed."""
    seconds, rest = divmod(time_ns, 10**9)
    digits = f"{rest:09}"
    while len(digits) > 3 and digits.endswith("000"):
        digits = digits[:-3]
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S") + f".{digits}+00:00"


TIMES = ("queue_ns", "dispatch_ns", "complete_ns")


def queue_ns(requests: pa.RecordBatch) -> Ints:
    """Return the queue times in ns, shape (rows,)."""
    return np.asarray(requests.column("queue_ns").to_numpy(zero_copy_only=False), np.int64)


def added(requests: pa.RecordBatch, names: Iterable[str], by: int | Ints) -> pa.RecordBatch:
    """Add one number, or an array of shape (rows,), to columns; null stays null."""
    if isinstance(by, int) and not by:
        return requests
    amount = pa.scalar(by, pa.int64()) if isinstance(by, int) else pa.array(by, pa.int64())
    for name in names:
        place = requests.schema.get_field_index(name)
        column = pc.add_checked(requests.column(place), amount)
        requests = requests.set_column(place, requests.schema.field(place), column)
    return requests


def ordered(batches: Iterable[pa.RecordBatch], source: Path) -> Iterator[pa.RecordBatch]:
    """Yield non-empty batches; raise UserError if rows are not in `queue_ns` order."""
    last = np.iinfo(np.int64).min
    for batch in batches:
        if not batch.num_rows:
            continue
        times = queue_ns(batch)
        if times[0] < last or (np.diff(times) < 0).any():
            raise UserError(
                f"{source}: its requests are not in the order in which they were queued; decode or import it again"
            )
        last = times[-1]
        yield batch
