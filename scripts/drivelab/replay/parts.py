"""One request of a trace, several records of a schedule: flushes before writes, and requests too long for an engine."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from drivelab.errors import UserError
from drivelab.replay.records import LONGEST_TRANSFER_BYTES
from drivelab.replay.survey import FLUSH
from drivelab.trace.statistics.batch import UNKNOWN, WRITE, Batch, Flags, Ints
from drivelab.units import format_size

MOST_PARTS = 1 << 14
"""Of one request, which then has 1 TiB: no device takes that in one."""


@dataclass
class Columns:
    """What records are made of. Arrays have shape (records,); `after` is the index of a record or -1."""

    deadline_ns: Ints
    offset_bytes: Ints
    length_bytes: Ints
    think_ns: Ints
    after: Ints
    depth: Ints
    operation: Ints
    fua: Flags
    preflush: Flags
    latency_ns: Ints
    """UNKNOWN where the trace does not tell."""


class Parts:
    """How the requests of a batch become records, the first of which is number `base` of the schedule.

    Raises UserError for a request that no device takes.
    """

    def __init__(self, batch: Batch, base: int) -> None:
        self._preflush = batch.flag("preflush") & (batch.operation == WRITE) & (batch.length_bytes > 0)
        pieces = np.where(batch.transfers, -(-batch.length_bytes // LONGEST_TRANSFER_BYTES), 1)
        if int(pieces.max(initial=0)) > MOST_PARTS:
            longest = int(batch.length_bytes[batch.transfers].max())
            raise UserError(f"a request of {format_size(longest)} fits no device; decode or import the trace anew")
        self.split = int((pieces > 1).sum())
        self._counts = pieces + self._preflush
        after = base + np.cumsum(self._counts)
        self._first = after - self._counts
        self.last: Ints = after - 1
        """Record of each request that completes when the request is done."""
        self.records = int(after[-1]) - base
        self.single = self.records == batch.rows
        """Whether each request is one record."""
        self.whose = np.repeat(np.arange(batch.rows), self._counts)
        """Row of the batch that each record belongs to."""

    def expand(self, requests: Columns) -> Columns:
        """Columns of the records from those of the requests, whose `preflush` is False and whose `after` is their own.

        A flush takes over what its write waited for; the write, or each part of it, waits for the flush.
        """
        if self.single:
            return requests
        whose, counts = self.whose, self._counts
        found = Columns(**{one.name: getattr(requests, one.name)[whose] for one in fields(Columns)})
        nth = np.arange(self.records) + self._first[0] - self._first[whose]
        flushed = self._preflush[whose]
        flush, piece = flushed & (nth == 0), nth - flushed
        moves = (counts[whose] > 1) & ~flush
        begin = np.where(moves, piece * LONGEST_TRANSFER_BYTES, 0)
        rest = found.length_bytes - begin
        found.offset_bytes += begin
        found.length_bytes = np.where(moves, np.minimum(rest, LONGEST_TRANSFER_BYTES), rest)
        found.latency_ns[nth < counts[whose] - 1] = UNKNOWN
        found.after[flushed & ~flush] = self._first[whose][flushed & ~flush]
        found.think_ns[flushed & ~flush] = 0
        found.preflush = flush
        found.operation[flush] = FLUSH
        found.fua[flush] = False
        found.offset_bytes[flush] = found.length_bytes[flush] = 0
        return found
