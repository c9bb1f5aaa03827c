"""Measure what requests touch, how sequentially, and how much repeatedly."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from drivelab.replay.records import OPERATION_CODES, open_schedule
from drivelab.trace.statistics.batch import Batch, Ints
from drivelab.trace.statistics.sequence import Sequence

_CHUNK = 1 << 20
"""Records or extents processed at a time."""


def union(begin: Ints, end: Ints, gap: int = 0) -> tuple[Ints, Ints]:
    """Return disjoint ascending extents [begin, end), with gaps up to `gap` filled.

    Adjoining extents become one. Begins and ends are sorted separately: before a gap there are as many ends as begins.
    This is several times faster than sorting pairs, especially for input made of sorted runs, which the stable sort
    only merges.
    """
    if not begin.size:
        return begin, end
    begin, end = np.sort(begin, kind="stable"), np.sort(end, kind="stable")
    first = np.ones(begin.size, np.bool_)
    first[1:] = begin[1:] - end[:-1] > gap
    last = np.append(first[1:], True)
    return begin[first], end[last]


class Union:
    """The union of extents from batches; memory grows with the disjoint extents."""

    def __init__(self, gap: int = 0) -> None:
        self._gap = gap
        self._known = (np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._new: list[tuple[Ints, Ints]] = []

    def add(self, begin: Ints, end: Ints) -> None:
        """Add non-empty extents [begin, end)."""
        self._new.append(union(begin, end, self._gap))
        if sum(new.size for new, _ in self._new) > max(_CHUNK, self._known[0].size):
            self.extents()

    def extents(self) -> tuple[Ints, Ints]:
        """Return begins and ends, ascending and disjoint."""
        both = [np.concatenate([known, *new]) for known, *new in zip(self._known, *self._new, strict=True)]
        self._known, self._new = union(both[0], both[1], self._gap), []
        return self._known

    def size(self) -> int:
        """Return the length that the extents cover, included gaps counted."""
        begin, end = self.extents()
        return int((end - begin).sum())


class Shape:
    """Footprint, sequential share and overlap of reads and writes, batch by batch."""

    def __init__(self) -> None:
        self._sequence, self._union = Sequence(), Union()
        self._transfers = self._sequential = self._moved_bytes = 0

    def add(self, batch: Batch) -> None:
        transfers = batch.transfers
        self._sequential += int(self._sequence.sequential(batch)[0].sum())
        self._transfers += int(transfers.sum())
        self._moved_bytes += int(batch.length_bytes[transfers].sum())
        self._union.add(batch.offset_bytes[transfers], batch.end_bytes[transfers])

    @property
    def footprint_bytes(self) -> int:
        """Distinct bytes read or written."""
        return self._union.size()

    @property
    def retouched_bytes(self) -> int:
        """Bytes read or written, minus the distinct bytes."""
        return self._moved_bytes - self.footprint_bytes

    @property
    def sequential_pct(self) -> float:
        """Sequential share of reads and writes; see drivelab.trace.statistics.sequence."""
        return 100 * self._sequential / self._transfers if self._transfers else 0.0


def footprint_extents(schedule: Path) -> Ints:
    """Return the extents that a schedule's reads touch, merged and ascending.

    Shape (n, 2): offset and length in bytes.
    Raises UserError as drivelab.replay.records.open_schedule does.
    """
    records, touched = open_schedule(schedule).records, Union()
    for low in range(0, len(records), _CHUNK):
        chunk = records[low : low + _CHUNK]
        reads = chunk[chunk["operation"] == OPERATION_CODES["read"]]
        offset = reads["offset_bytes"].astype(np.int64)
        touched.add(offset, offset + reads["length_bytes"].astype(np.int64))
    begin, end = touched.extents()
    return np.stack([begin, end - begin], axis=1)
