"""Expand requests to schedule records: preflushes and long transfers."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from drivelab.errors import UserError
from drivelab.replay.records import LONGEST_TRANSFER_BYTES
from drivelab.replay.survey import FLUSH
from drivelab.trace.statistics.batch import UNKNOWN, WRITE, Batch, Flags, Ints
from drivelab.units import format_size

MOST_PARTS = 1 << 14
"""Most records of one request: 1 TiB, more than any device accepts at once."""


@dataclass
class Columns:
    """Columns of records, arrays of shape (records,).

    `after` is the index of a record or -1.
    """

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
    """UNKNOWN where the trace has no completion."""


class Parts:
    """How a batch of requests expands to records; the first has index `base`.

    Raises UserError for a request larger than any device accepts.
    """

    def __init__(self, batch: Batch, base: int) -> None:
        self._preflush = batch.flag("preflush") & (batch.operation == WRITE) & (batch.length_bytes > 0)
        pieces = np.where(batch.transfers, -(-batch.length_bytes // LONGEST_TRANSFER_BYTES), 1)
        if int(pieces.max(initial=0)) > MOST_PARTS:
            longest = int(batch.length_bytes[batch.transfers].max())
            raise UserError(f"a request of {format_size(longest)} fits no device; decode or import the trace again")
        self.split = int((pieces > 1).sum())
        self._counts = pieces + self._preflush
        after = base + np.cumsum(self._counts)
        self._first = after - self._counts
        self.last: Ints = after - 1
        """The last record of each request."""
        self.records = int(after[-1]) - base
        self.single = self.records == batch.rows
        """Whether each request is one record."""
        self.row_of = np.repeat(np.arange(batch.rows), self._counts)
        """The batch row of each record."""

    def expand(self, requests: Columns) -> Columns:
        """Return the records' columns from the requests' columns.

        Every `preflush` of the requests is False.

        A flush inherits the dependency of its write; the write, or each part of it, waits for the flush.
        """
        if self.single:
            return requests
        row_of, counts = self.row_of, self._counts
        records = Columns(**{column.name: getattr(requests, column.name)[row_of] for column in fields(Columns)})
        nth = np.arange(self.records) + self._first[0] - self._first[row_of]
        flushed = self._preflush[row_of]
        flush, piece = flushed & (nth == 0), nth - flushed
        moves = (counts[row_of] > 1) & ~flush
        begin = np.where(moves, piece * LONGEST_TRANSFER_BYTES, 0)
        rest = records.length_bytes - begin
        records.offset_bytes += begin
        records.length_bytes = np.where(moves, np.minimum(rest, LONGEST_TRANSFER_BYTES), rest)
        records.latency_ns[nth < counts[row_of] - 1] = UNKNOWN
        records.after[flushed & ~flush] = self._first[row_of][flushed & ~flush]
        records.think_ns[flushed & ~flush] = 0
        records.preflush = flush
        records.operation[flush] = FLUSH
        records.fua[flush] = False
        records.offset_bytes[flush] = records.length_bytes[flush] = 0
        return records
