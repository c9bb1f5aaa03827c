"""What requests touch, how sequentially, and how much of it more than once."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from drivelab.replay.records import OPERATION_CODES, open_schedule
from drivelab.trace.statistics.batch import Batch, Ints
from drivelab.trace.statistics.sequence import Sequence

_CHUNK = 1 << 20
"""Records or extents taken at a time."""


def union(begin: Ints, end: Ints, gap: int = 0) -> tuple[Ints, Ints]:
    """Disjoint extents [begin, end) in ascending order that cover the same, and gaps up to `gap` between them.

    Extents that adjoin each other become one. Begins and ends may be sorted apart: before a gap there are as many
    ends as begins. That is several times faster than to sort them as pairs, the more so for extents that consist of
    parts in order: those the stable sort only merges.
    """
    if not begin.size:
        return begin, end
    begin, end = np.sort(begin, kind="stable"), np.sort(end, kind="stable")
    first = np.ones(begin.size, np.bool_)
    first[1:] = begin[1:] - end[:-1] > gap
    last = np.append(first[1:], True)
    return begin[first], end[last]


class Union:
    """The union of extents that come in batches; memory is that of the disjoint ones."""

    def __init__(self, gap: int = 0) -> None:
        self._gap = gap
        self._known = (np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._new: list[tuple[Ints, Ints]] = []

    def add(self, begin: Ints, end: Ints) -> None:
        """Extents [begin, end), none of them empty."""
        self._new.append(union(begin, end, self._gap))
        if sum(new.size for new, _ in self._new) > max(_CHUNK, self._known[0].size):
            self.extents()

    def extents(self) -> tuple[Ints, Ints]:
        """Begins and ends, ascending and disjoint."""
        both = [np.concatenate([known, *new]) for known, *new in zip(self._known, *self._new, strict=True)]
        self._known, self._new = union(both[0], both[1], self._gap), []
        return self._known

    def size(self) -> int:
        """What the extents cover, the gaps that belong to them included."""
        begin, end = self.extents()
        return int((end - begin).sum())


class Shape:
    """Footprint, sequential share and overlap of reads and writes, followed batch by batch."""

    def __init__(self) -> None:
        self._sequence, self._union = Sequence(), Union()
        self._transfers = self._sequential = self._moved_bytes = 0

    def add(self, batch: Batch) -> None:
        chosen = batch.transfers
        self._sequential += int(self._sequence.sequential(batch)[0].sum())
        self._transfers += int(chosen.sum())
        self._moved_bytes += int(batch.length_bytes[chosen].sum())
        self._union.add(batch.offset_bytes[chosen], batch.end_bytes[chosen])

    @property
    def footprint_bytes(self) -> int:
        """Distinct bytes that were read or written."""
        return self._union.size()

    @property
    def retouched_bytes(self) -> int:
        """Bytes that were read or written, less the distinct ones."""
        return self._moved_bytes - self.footprint_bytes

    @property
    def sequential_pct(self) -> float:
        """Share of the reads and writes that are sequential, after drivelab.trace.statistics.sequence."""
        return 100 * self._sequential / self._transfers if self._transfers else 0.0


def footprint_extents(schedule: Path) -> Ints:
    """Extents that the reads of a schedule touch, merged and ascending: shape (n, 2), offset and length in bytes.

    Raises UserError as drivelab.replay.records.open_schedule does.
    """
    records, found = open_schedule(schedule).records, Union()
    for low in range(0, len(records), _CHUNK):
        chunk = records[low : low + _CHUNK]
        reads = chunk[chunk["operation"] == OPERATION_CODES["read"]]
        offset = reads["offset_bytes"].astype(np.int64)
        found.add(offset, offset + reads["length_bytes"].astype(np.int64))
    begin, end = found.extents()
    return np.stack([begin, end - begin], axis=1)
