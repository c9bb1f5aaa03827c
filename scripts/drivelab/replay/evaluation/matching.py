"""Match the requests of a kernel capture to the requests of a replay."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Extents:
    """Requests as arrays of shape (n,), in time order."""

    operation: Ints
    offset_bytes: Ints
    length_bytes: Ints

    def take(self, rows: npt.NDArray[np.intp]) -> Extents:
        return Extents(self.operation[rows], self.offset_bytes[rows], self.length_bytes[rows])

    def __len__(self) -> int:
        return len(self.operation)


@dataclass(frozen=True)
class Matches:
    """Planned requests and the captured ones that they became."""

    first: Ints
    """First captured request of each planned one, shape (planned,); -1: none."""
    of_captured: Ints
    """Planned request of each captured one, shape (captured,); -1: not part of the replay."""

    @property
    def split(self) -> int:
        """Return the number of planned requests that became several."""
        return int((np.bincount(self.of_captured[self.of_captured >= 0], minlength=1) > 1).sum())


def match(planned: Extents, captured: Extents, strange: npt.NDArray[np.bool_] | None = None) -> Matches:
    """Match the k-th planned to the k-th captured request of the same extent.

    The same extent means equal operation, offset and length.
    A remaining planned request is matched to adjoining captured requests of its operation that cover it exactly: the
    kernel submits a long request in parts. Captured requests flagged in `strange`, shape (captured,), match nothing.
    """
    if strange is not None and strange.any():
        kept, of_captured = np.flatnonzero(~strange), np.full(len(captured), -1, np.int64)
        rest = match(planned, captured.take(kept))
        of_captured[kept] = rest.of_captured
        return Matches(np.append(kept, -1)[rest.first], of_captured)  # index -1 selects the appended -1
    first, of_captured = np.full(len(planned), -1, np.int64), np.full(len(captured), -1, np.int64)
    fields = [np.concatenate([getattr(planned, name), getattr(captured, name)]) for name in _FIELDS]
    order = np.lexsort(fields)  # stable: planned before captured requests, each in time order
    changes = np.zeros(len(order), np.bool_)
    for field in fields:
        ordered = field[order]
        changes[1:] |= ordered[1:] != ordered[:-1]
    group = np.cumsum(changes, dtype=np.int64)
    is_planned = order < len(planned)
    ours, theirs = np.flatnonzero(is_planned), np.flatnonzero(~is_planned)
    key_ours, key_theirs = (_numbered(group[places]) for places in (ours, theirs))
    _, left, right = np.intersect1d(key_ours, key_theirs, assume_unique=True, return_indices=True)
    matched_planned, matched_captured = order[ours[left]], order[theirs[right]] - len(planned)
    first[matched_planned], of_captured[matched_captured] = matched_captured, matched_planned
    _match_parts(planned, captured, first, of_captured)
    return Matches(first, of_captured)


def surplus(issued_ns: npt.NDArray[np.float64], captured_ns: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return which captured requests are surplus, if more were captured than issued.

    Shape (captured,).
    All requests are of one kind; both arrays are ascending and on one clock. Surplus are requests that come before the
    next issue, and those left at the end.
    """
    is_surplus = np.zeros(len(captured_ns), np.bool_)
    left, at = len(captured_ns) - len(issued_ns), 0
    for row, seen_ns in enumerate(captured_ns.tolist()):
        if left > 0 and (at == len(issued_ns) or seen_ns < issued_ns[at]):
            is_surplus[row], left = True, left - 1
        else:
            at += 1
    return is_surplus


_FIELDS = ("operation", "offset_bytes", "length_bytes")


def _numbered(group: Ints) -> Ints:
    """Return one number for each pair of group and position in the group.

    `group` is ascending.
    """
    if not group.size:
        return group
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    place = np.arange(len(group)) - np.repeat(starts, np.diff(np.append(starts, len(group))))
    return group << 32 | place


def _match_parts(planned: Extents, captured: Extents, first: Ints, of_captured: Ints) -> None:
    waiting = np.flatnonzero((first < 0) & (planned.length_bytes > 0))
    free = np.flatnonzero((of_captured < 0) & (captured.length_bytes > 0))
    if not waiting.size or not free.size:
        return
    begins: defaultdict[tuple[int, int], deque[int]] = defaultdict(deque)
    for row in free.tolist():
        begins[int(captured.operation[row]), int(captured.offset_bytes[row])].append(row)
    for row in waiting.tolist():
        operation, at = int(planned.operation[row]), int(planned.offset_bytes[row])
        end = at + int(planned.length_bytes[row])
        parts: list[int] = []
        while at < end and begins.get((operation, at)):
            parts.append(begins[operation, at].popleft())
            at += int(captured.length_bytes[parts[-1]])
        if at == end:
            of_captured[parts] = row
            first[row] = min(parts)
            continue
        for part in reversed(parts):
            begins[operation, int(captured.offset_bytes[part])].appendleft(part)
