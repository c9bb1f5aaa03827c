"""Events to requests: which dispatch and which completion belong to which queued request."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TypeVar

from drivelab.trace.records import DISCARD, FLUSH, FUA, META, READ, SYNC, WRITE

SECTOR_BYTES = 512
QUEUE, REQUEUE, DISPATCH, COMPLETE = 1, 6, 7, 8

T = TypeVar("T")
Key = tuple[int, int]
"""Direction (of `_direction`) and sector."""


@dataclass(slots=True)
class Request:
    """A queued request; times in ns, None where the trace has no such event."""

    queue_ns: int
    action: int
    sector: int
    length_bytes: int
    pid: int
    cpu: int
    dispatch_ns: int | None = None
    complete_ns: int | None = None
    error: int = 0
    undispatched: int = 0
    """Bytes at the end that no dispatch has covered yet: a split request is dispatched in pieces."""
    in_flight: int = 0
    """Dispatched pieces that have not completed."""


@dataclass(slots=True)
class _Dispatch:
    length_bytes: int
    left: int
    members: list[Request]


@dataclass
class Matcher:
    """Follows requests through the block layer, event by event in the order of time.

    A dispatch is matched by walking along its sectors: whatever was queued for them and has not been dispatched
    belongs to it. That covers merges at either end (M, F: one dispatch, several queued requests) and splits
    (X: one queued request, several dispatches) with one rule and needs neither event.

    Flushes follow linux/block/blk-flush.c. A write with PREFLUSH or FUA on a drive that lacks FUA becomes flush,
    write, flush, and ends with a second completion of length zero at its sector; an empty flush becomes a flush
    request (FN, shared by all that wait) and ends with a completion of length zero too. btt takes those for
    completions of whatever else was at the sector.
    """

    requests: list[Request] = field(default_factory=list)
    unmatched: Counter[str] = field(default_factory=Counter)
    """What found no partner: `dispatches` and `completions` (without a queued request, such as those of before
    the trace began), `undispatched` and `uncompleted` requests (mostly of its very end)."""
    device_flushes: int = 0
    """Flush requests that the drive got, on their own or around a write."""
    _queued: dict[Key, deque[Request]] = field(default_factory=dict)
    _dispatched: dict[Key, deque[_Dispatch]] = field(default_factory=dict)
    _requeued: dict[Key, deque[_Dispatch]] = field(default_factory=dict)
    _sequence_end: dict[Key, Request] = field(default_factory=dict)
    _empty_flushes: deque[Request] = field(default_factory=deque)
    _flush_dispatches: deque[int] = field(default_factory=deque)
    _last_flush_ns: int | None = None

    def event(self, time_ns: int, action: int, sector: int, length_bytes: int, error: int, pid: int, cpu: int) -> None:
        """Take in one event; notifications and passthrough commands are the caller's to leave out."""
        kind = action & 0xFFFF
        if kind == QUEUE:
            self._queue(Request(time_ns, action, sector, length_bytes, pid, cpu, undispatched=length_bytes))
        elif kind == DISPATCH:
            self._dispatch(time_ns, action, sector, length_bytes)
        elif kind == COMPLETE:
            self._complete(time_ns, action, sector, length_bytes, error)
        elif kind == REQUEUE:
            self._requeue(action, sector)

    def finish(self) -> None:
        """Count what is left at the end of the trace."""
        for request in self.requests:
            if request.complete_ns is None:
                self.unmatched["undispatched" if request.dispatch_ns is None else "uncompleted"] += 1

    def _queue(self, request: Request) -> None:
        self.requests.append(request)
        if request.length_bytes == 0:
            self._empty_flushes.append(request)
            return
        key = (_direction(request.action), request.sector)
        self._sequence_end.pop(key, None)
        _push(self._queued, key, request)

    def _dispatch(self, time_ns: int, action: int, sector: int, length_bytes: int) -> None:
        if _is_flush_request(action, length_bytes):
            self.device_flushes += 1
            self._flush_dispatches.append(time_ns)
            return
        key = (_direction(action), sector)
        if (again := _pop(self._requeued, key)) is not None:
            for member in again.members:
                member.dispatch_ns = time_ns
        else:
            again = _Dispatch(length_bytes, length_bytes, self._members(time_ns, *key, length_bytes))
        _push(self._dispatched, key, again)

    def _members(self, time_ns: int, direction: int, sector: int, length_bytes: int) -> list[Request]:
        members: list[Request] = []
        while length_bytes > 0:
            request = _pop(self._queued, (direction, sector))
            if request is None:
                self.unmatched["dispatches"] += 1
                break
            piece = min(request.undispatched, length_bytes)
            request.undispatched -= piece
            request.in_flight += 1
            request.dispatch_ns = request.dispatch_ns or time_ns
            members.append(request)
            sector += piece // SECTOR_BYTES
            length_bytes -= piece
            if request.undispatched:
                _push(self._queued, (direction, sector), request)
        return members

    def _complete(self, time_ns: int, action: int, sector: int, length_bytes: int, error: int) -> None:
        key = (_direction(action), sector)
        if length_bytes == 0:
            self._complete_empty(time_ns, action, key, error)
            return
        dispatch = _pop(self._dispatched, key)
        if dispatch is None:
            self._complete_bio(time_ns, key, length_bytes, error)
            return
        dispatch.left -= length_bytes
        if dispatch.left > 0:
            _push(self._dispatched, (key[0], sector + length_bytes // SECTOR_BYTES), dispatch)
            return
        for member in dispatch.members:
            member.in_flight -= 1
            member.error = error or member.error
            if not member.in_flight and not member.undispatched:
                member.complete_ns = time_ns
                if member.action & (FLUSH | FUA):
                    self._sequence_end[key[0], member.sector] = member

    def _complete_empty(self, time_ns: int, action: int, key: Key, error: int) -> None:
        if _is_flush_request(action, 0):
            if self._flush_dispatches:
                self._last_flush_ns = self._flush_dispatches.popleft()
            else:
                self.unmatched["completions"] += 1
            return
        request = self._sequence_end.get(key)
        flags = SYNC | META
        if request is not None and (not self._empty_flushes or request.action & flags == action & flags):
            del self._sequence_end[key]
        elif self._empty_flushes:
            request = self._empty_flushes.popleft()
            if self._last_flush_ns is not None and self._last_flush_ns >= request.queue_ns:
                request.dispatch_ns = self._last_flush_ns
        if request is None:
            self.unmatched["completions"] += 1
            return
        request.complete_ns = time_ns
        request.error = error or request.error

    def _complete_bio(self, time_ns: int, key: Key, length_bytes: int, error: int) -> None:
        """Devices without a request queue (dm, md, zram) complete what was queued and dispatch nothing."""
        request = _pop(self._queued, key)
        if request is None or request.undispatched != length_bytes or request.dispatch_ns is not None:
            if request is not None:
                self._queued.setdefault(key, deque()).appendleft(request)
            self.unmatched["completions"] += 1
            return
        request.complete_ns, request.error, request.undispatched = time_ns, error, 0

    def _requeue(self, action: int, sector: int) -> None:
        key = (_direction(action), sector)
        dispatch = _pop(self._dispatched, key)
        if dispatch is None:
            self.unmatched["requeues"] += 1
        else:
            _push(self._requeued, key, dispatch)


def _direction(action: int) -> int:
    """Discards carry the write bit too, so they come first."""
    return action & DISCARD or action & WRITE or READ


def _is_flush_request(action: int, length_bytes: int) -> bool:
    """REQ_OP_FLUSH has an even number, so the kernel marks it as read; an empty flush that was queued is a write."""
    return length_bytes == 0 and bool(action & FLUSH) and not action & WRITE


def _push(table: dict[Key, deque[T]], key: Key, item: T) -> None:
    table.setdefault(key, deque()).append(item)


def _pop(table: dict[Key, deque[T]], key: Key) -> T | None:
    waiting = table.get(key)
    if not waiting:
        return None
    item = waiting.popleft()
    if not waiting:
        del table[key]
    return item
