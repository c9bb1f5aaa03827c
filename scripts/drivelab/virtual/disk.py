"""The mechanics of a virtual hard disk: heads that seek, platters that turn, zones of different bandwidth.

Tracks are circles: with the radius, their bytes and so the bandwidth fall from the outer to the inner edge, and the
capacity up to a radius grows with the area (zoned constant angular velocity: Van Meter, USENIX 1997). The time of a
seek grows with the square root of the distance (Ruemmler and Wilkes, IEEE Computer 27(3), 1994). Standard library only.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

from drivelab.virtual.effects import Effect

_MIB = 1 << 20
_MOST_QUEUED = 32
"""Commands among which the disk chooses: the depth of native command queuing (Serial ATA revision 2.5 and later)."""


@dataclass(frozen=True)
class Disk(Effect):
    """The drive is a hard disk: these times replace those of flash. It has no write cache."""

    rpm: float
    """Turns of the platters per minute."""
    track_seek_ms: float
    """Time of the shortest seek."""
    full_seek_ms: float
    """Time of the seek over all tracks."""
    outer_mib_s: float
    """Bandwidth of the outermost track, where the addresses begin."""
    inner_mib_s: float
    """Bandwidth of the innermost track."""

    def check(self) -> None:
        if self.track_seek_ms > self.full_seek_ms:
            raise ValueError("'track_seek_ms' must not exceed 'full_seek_ms'")
        if self.inner_mib_s > self.outer_mib_s:
            raise ValueError("'inner_mib_s' must not exceed 'outer_mib_s'")

    @property
    def turn_us(self) -> float:
        """Return the time of one turn."""
        return 60e6 / self.rpm

    def mib_s(self, position: float) -> float:
        """Return the bandwidth at a fraction of the capacity."""
        return math.sqrt(self.outer_mib_s**2 - position * (self.outer_mib_s**2 - self.inner_mib_s**2))

    def seek_us(self, distance: float) -> float:
        """Return the time of a seek over a fraction of the capacity; none for no distance."""
        return (
            1e3 * (self.track_seek_ms + (self.full_seek_ms - self.track_seek_ms) * math.sqrt(distance)) * (distance > 0)
        )


class Mechanics:
    """The heads and platters of a disk; times are microseconds, and requests come in order of time.

    A request is answered before later ones are known, so the disk cannot reorder them. Instead, a request that finds
    others waiting takes what it would take in the best order, on average: its seek is from the nearest of them, and its
    wait for the sector shrinks by 2 / (number + 1), as the least of several waits does.
    """

    def __init__(self, disk: Disk, capacity_bytes: int, now_us: float) -> None:
        self._disk, self._capacity = disk, capacity_bytes
        self._end = 0
        """End of the last request."""
        self._waiting: deque[tuple[float, int]] = deque(maxlen=_MOST_QUEUED)
        """Completion and offset of the last requests, in order; the last completion frees the heads."""
        self._free_us = now_us

    def access(self, now_us: float, offset: int, length: int) -> float:
        """Return when a read or write completes."""
        disk, waiting = self._disk, self._waiting
        while waiting and waiting[0][0] <= now_us:
            waiting.popleft()
        at_us, position = max(now_us, self._free_us), offset / self._capacity
        rate = disk.mib_s(position) * _MIB
        if offset != self._end:
            places = [self._end, *(place for _, place in waiting)]
            at_us += disk.seek_us(min(abs(offset - place) for place in places) / self._capacity)
            sector = offset / (rate * disk.turn_us / 1e6)
            choice = min(len(waiting), _MOST_QUEUED - 1) + 1
            at_us += (sector - at_us / disk.turn_us) % 1.0 * disk.turn_us * 2 / (choice + 1)
        self._end = offset + length
        self._free_us = at_us + 1e6 * length / rate
        waiting.append((self._free_us, offset))
        return self._free_us

    @property
    def free_us(self) -> float:
        """Return when all requests so far are complete."""
        return self._free_us

    def shift(self, us: float) -> None:
        self._free_us += us
        self._waiting = deque(((at + us, place) for at, place in self._waiting), _MOST_QUEUED)

    def state(self) -> list[Any]:
        return [self._end, self._free_us, [list(request) for request in self._waiting]]

    def restore(self, state: list[Any]) -> None:
        self._end, self._free_us, waiting = state
        self._waiting = deque(((at, place) for at, place in waiting), _MOST_QUEUED)
