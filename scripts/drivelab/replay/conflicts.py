"""Find requests that overlap by address, so that one must wait for the other, or a trace can be refused.

Two requests conflict if they share bytes and at least one of them writes, discards or zeroes. One dependency for each
request is not enough: a write over two blocks that two independent reads use must wait for both reads, and a request
that waits for its process may also conflict with another. So a request may have any number of dependencies.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from drivelab.replay import compiled
from drivelab.replay.survey import union
from drivelab.trace.statistics.batch import Flags, Ints

MOST_READERS = 64
"""Reads of a block that its next write waits for. Each read waits for the 64th one of the same block before it, so the
write waits for all. This bounds memory, and delays only reads of blocks with more than 64 reads in flight."""
_MOST_PAIRS = 1 << 22
"""Pairs of a request and a segment that are processed together."""
_INDEX_BITS = 32
_LAST_INDEX = (1 << _INDEX_BITS) - 1


class Accesses(NamedTuple):
    """Requests in the order of the schedule; arrays of shape (requests,)."""

    begin: Ints
    end: Ints
    """Equal to `begin` for a request without an address."""
    changes: Flags
    """Whether the request changes data."""

    def part(self, chosen: slice | Flags | Ints) -> Accesses:
        return Accesses(self.begin[chosen], self.end[chosen], self.changes[chosen])


class _Pairs(NamedTuple):
    """Pairs of a request and a segment that it touches, by segment, then by request.

    Segments are the stretches between all begins and ends, so a request touches whole segments.
    """

    row: Ints
    segment: Ints
    edges: Ints
    """Segment s is [edges[s], edges[s + 1])."""


def _split(begin: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    edges = np.unique(np.concatenate([begin, end]))
    first = np.searchsorted(edges, begin)
    return edges, first, np.searchsorted(edges, end) - first


def _pairs(begin: Ints, end: Ints) -> _Pairs:
    edges, first, counts = _split(begin, end)
    row = np.repeat(np.arange(begin.size), counts)
    segment = np.arange(row.size) + np.repeat(first - (np.cumsum(counts) - counts), counts)
    order = np.argsort(segment, kind="stable")
    return _Pairs(row[order], segment[order], edges)


def _too_many(accesses: Accesses) -> bool:
    return accesses.begin.size > 1 and int(_split(accesses.begin, accesses.end)[2].sum()) > _MOST_PAIRS


class Overlaps:
    """Find requests that conflict with an earlier one in flight, batch by batch.

    Memory holds the requests in flight.
    """

    def __init__(self) -> None:
        self._flying = Accesses(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_))
        self._ends_ns = np.zeros(0, np.int64)

    def of(self, accesses: Accesses, start_ns: Ints, end_ns: Ints) -> Flags:
        """Return which requests begin while a conflicting one, earlier in the order of `start_ns`, is in flight.

        A request with an end before its start is never in flight.
        """
        every = Accesses(*(np.concatenate(both) for both in zip(self._flying, accesses, strict=True)))
        ends_ns = np.concatenate([self._ends_ns, end_ns])
        result = compiled.overlaps(*every, ends_ns, start_ns)
        if start_ns.size:
            kept = ends_ns > start_ns[-1]
            self._flying, self._ends_ns = every.part(kept), ends_ns[kept]
        return result


class Order:
    """Find the earlier requests that each request must wait for, batch by batch.

    A request waits for the last change of each of its segments, and a change for the reads since. Waits that follow
    from others are left out. Memory holds, for each segment, the last change and the last MOST_READERS reads since.
    """

    def __init__(self) -> None:
        self._known = Accesses(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_))
        """By begin; two are either of the same segment or disjoint."""
        self._records = np.zeros(0, np.int64)

    def of(self, accesses: Accesses, records: Ints) -> tuple[Ints, Ints]:
        """Return pairs of record and earlier record: by record, the latest earlier one first.

        `records` are the indexes of the requests in the schedule, ascending.
        """
        placed = accesses.end > accesses.begin
        if not placed.all():
            return self.of(accesses.part(placed), records[placed])
        if not records.size:
            return records, records
        involved = self._involved(accesses)
        oldest_first = np.flatnonzero(involved)[np.argsort(self._records[involved], kind="stable")]
        before = oldest_first.size
        every = Accesses(*(np.concatenate(both) for both in zip(self._known.part(oldest_first), accesses, strict=True)))
        if records.size > 1 and _too_many(every):
            half = records.size // 2
            halves = [self.of(accesses.part(part), records[part]) for part in (slice(half), slice(half, None))]
            later, earlier = (np.concatenate(both) for both in zip(*halves, strict=True))
            return later, earlier
        every_record = np.concatenate([self._records[oldest_first], records])
        pairs = _pairs(every.begin, every.end)
        later, earlier, kept = _waits(pairs, every.changes[pairs.row], before)
        self._keep(~involved, pairs, every, every_record, kept)
        # Sorted by record, then by the latest earlier record. One record may be known of several segments.
        waits = np.unique(((every_record[later] - records[0]) << _INDEX_BITS) + _LAST_INDEX - every_record[earlier])
        return (waits >> _INDEX_BITS) + records[0], _LAST_INDEX - (waits & _LAST_INDEX)

    def _involved(self, accesses: Accesses) -> Flags:
        """Return which known accesses share bytes with the new ones."""
        begin, end = union(accesses.begin, accesses.end)
        marks = np.zeros(self._records.size + 1, np.int64)
        np.add.at(marks, np.searchsorted(self._known.end, begin, "right"), 1)
        np.add.at(marks, np.searchsorted(self._known.begin, end, "left"), -1)
        return np.cumsum(marks)[:-1] > 0

    def _keep(self, others: Flags, pairs: _Pairs, every: Accesses, every_record: Ints, kept: Flags) -> None:
        row, segment = pairs.row[kept], pairs.segment[kept]
        new = Accesses(pairs.edges[segment], pairs.edges[segment + 1], every.changes[row])
        known = Accesses(*(np.concatenate(both) for both in zip(self._known.part(others), new, strict=True)))
        order = np.argsort(known.begin, kind="stable")
        self._known = known.part(order)
        self._records = np.concatenate([self._records[others], every_record[row]])[order]


def _waits(pairs: _Pairs, changes: Flags, before: int) -> tuple[Ints, Ints, Flags]:
    """Return rows that wait, each with the row that it waits for, and which pairs a later request may wait for.

    Rows from `before` on are new.
    """
    row, segment = pairs.row, pairs.segment
    place = np.arange(row.size)
    new_segment = np.concatenate([[True], segment[1:] != segment[:-1]])
    first = np.maximum.accumulate(np.where(new_segment, place, 0))
    starts = np.append(np.flatnonzero(new_segment), row.size)
    end = starts[np.cumsum(new_segment)]
    last_change = np.maximum.accumulate(np.where(changes, place, -1))
    earlier_change = np.concatenate([[-1], last_change[:-1]])
    next_change = np.minimum.accumulate(np.where(changes, place, row.size)[::-1])[::-1]
    changed = earlier_change >= first
    is_new = row >= before

    on_change = is_new & changed & (~changes | (earlier_change == place - 1))
    read = ~changes & (next_change < end) & (next_change - place <= MOST_READERS)
    read[read] = is_new[next_change[read]]
    chained = is_new & ~changes & (place - MOST_READERS >= np.where(changed, earlier_change + 1, first))
    later = np.concatenate([place[on_change], next_change[read], place[chained]])
    earlier = np.concatenate([earlier_change[on_change], place[read], place[chained] - MOST_READERS])
    kept = (place >= last_change[end - 1]) & (changes | (end - place <= MOST_READERS))
    return row[later], row[earlier], kept
