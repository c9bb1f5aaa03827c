"""Match queue, dispatch and completion events to requests, in bounded memory."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

MOST_WAITING = 1 << 17
"""Most requests that wait for their completion; beyond, the oldest is released without one."""

T = TypeVar("T")
Key = tuple[str, str, int]
"""Volume, operation, first sector."""


class Event(NamedTuple):
    """An event of a request: one line of the text."""

    line: int
    time_ns: int
    action: str
    """`Q`, `D` or `C`."""
    volume: str
    operation: str
    flags: frozenset[str]
    sector: int
    sectors: int
    cpu: int
    pid: int
    process: str
    error: int


@dataclass(slots=True, eq=False)
class Queued:
    """A request: its queue event, dispatch and completion."""

    event: Event
    dispatch_ns: int | None = None
    complete_ns: int | None = None
    error: int = 0
    undispatched: int = 0
    """Sectors that no dispatch covers yet."""
    waits_at: Key | None = None
    """Key among the undispatched requests."""
    in_flight: list[Dispatch] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Dispatch:
    """A dispatched command and its requests."""

    key: Key
    sectors: int
    members: list[Queued]


class EventMatcher:
    """Pair events by volume, operation and sector.

    A dispatch belongs to the oldest undispatched request with its sector and length. If there is none, it belongs to
    the undispatched requests along its sectors (merged: several requests, split: the start of one). A completion
    belongs to the oldest dispatch with its sector and length. Without a dispatch there (device mapper, md), it belongs
    to the oldest request. Flushes have no sector, so they pair in order. With `from_dispatch`, a request begins with
    its dispatch.
    """

    def __init__(
        self, unmatched: Counter[str], most_waiting: int = MOST_WAITING, *, from_dispatch: bool = False
    ) -> None:
        self._unmatched = unmatched
        self._first_action = "D" if from_dispatch else "Q"
        self.dispatches = 0
        self._most_waiting = most_waiting
        self._waiting: deque[Queued] = deque()
        self._undispatched: dict[Key, deque[Queued]] = {}
        self._in_flight: dict[Key, deque[Dispatch]] = {}

    def event(self, event: Event) -> None:
        """Add an event; events must come in the order of the text."""
        key = (event.volume, event.operation, event.sector)
        if event.action == self._first_action:
            request = Queued(event, undispatched=event.sectors)
            self._waiting.append(request)
            self._wait_at(key, request)
        if event.action == "D":
            self.dispatches += 1
            self._dispatch(event, key)
        elif event.action == "C":
            self._complete(event, key)

    def done(self) -> Iterator[Queued]:
        """Yield requests, in the order of the text, that need not wait longer."""
        while self._waiting and (self._waiting[0].complete_ns is not None or len(self._waiting) > self._most_waiting):
            yield self._give_up(self._waiting.popleft())

    def finish(self) -> Iterator[Queued]:
        """Yield the remaining requests."""
        while self._waiting:
            yield self._give_up(self._waiting.popleft())

    def _dispatch(self, event: Event, key: Key) -> None:
        members = self._members(key, event.sectors)
        if not members:
            self._unmatched["dispatches"] += 1
            return
        dispatch = Dispatch(key, event.sectors, members)
        self._in_flight.setdefault(key, deque()).append(dispatch)
        for member in members:
            member.in_flight.append(dispatch)
            if member.dispatch_ns is None:
                member.dispatch_ns = event.time_ns

    def _members(self, key: Key, sectors: int) -> list[Queued]:
        exact = next((queued for queued in self._undispatched.get(key, ()) if queued.undispatched == sectors), None)
        if exact is not None:
            self._stop_waiting(exact)
            exact.undispatched = 0
            return [exact]
        members: list[Queued] = []
        volume, operation, sector = key
        while sectors > 0 and (candidates := self._undispatched.get((volume, operation, sector))):
            request = candidates[0]
            piece = min(request.undispatched, sectors)
            if not piece:
                break
            self._stop_waiting(request)
            request.undispatched -= piece
            sector, sectors = sector + piece, sectors - piece
            if request.undispatched:
                self._wait_at((volume, operation, sector), request)
            members.append(request)
        if members and sectors:
            self._unmatched["parts of dispatches"] += 1
        return members

    def _complete(self, event: Event, key: Key) -> None:
        dispatches = self._in_flight.get(key, ())
        dispatch = next((candidate for candidate in dispatches if candidate.sectors == event.sectors), None)
        if dispatch is None:
            whole = (queued for queued in self._undispatched.get(key, ()) if queued.undispatched == event.sectors)
            request = next((queued for queued in whole if queued.dispatch_ns is None), None)
            if request is None:
                self._unmatched["completions"] += 1
                return
            self._stop_waiting(request)
            request.complete_ns, request.error, request.undispatched = event.time_ns, event.error, 0
            return
        self._forget(dispatch)
        for member in dispatch.members:
            member.in_flight.remove(dispatch)
            member.error = event.error or member.error
            if not member.in_flight and not member.undispatched:
                member.complete_ns = event.time_ns

    def _give_up(self, request: Queued) -> Queued:
        if request.complete_ns is None:
            self._unmatched["undispatched" if request.dispatch_ns is None else "uncompleted"] += 1
            self._stop_waiting(request)
            for dispatch in request.in_flight:
                dispatch.members.remove(request)
                if not dispatch.members:
                    self._forget(dispatch)
        return request

    def _wait_at(self, key: Key, request: Queued) -> None:
        request.waits_at = key
        self._undispatched.setdefault(key, deque()).append(request)

    def _stop_waiting(self, request: Queued) -> None:
        if request.waits_at is not None:
            _remove(self._undispatched, request.waits_at, request)
            request.waits_at = None

    def _forget(self, dispatch: Dispatch) -> None:
        _remove(self._in_flight, dispatch.key, dispatch)


def _remove(table: dict[Key, deque[T]], key: Key, item: T) -> None:
    items = table[key]
    items.remove(item)
    if not items:
        del table[key]
