"""The flash translation layer of a virtual drive: the place of every page and the completion time of every request.

Page mapping with separate frontiers for host writes and moved pages, greedy garbage collection (the victim is the
block with the fewest valid pages: Bux and Iliadis, Performance Evaluation 67, 2010), an SLC cache and a write buffer.
It stores no data, only places. Standard library only, with a low cost per request: it uses lists of integers, and
spreads the times of moved pages evenly over the dies that a block is striped over.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from drivelab.virtual.effects import Variation
from drivelab.virtual.flash_state import NONE, OPEN, FlashState
from drivelab.virtual.model import PAGE_BYTES, DriveModel

_PACES = 16
"""Changes of pace within the `wander_s` of a variation."""
_FREE_BLOCKS = 2
"""Garbage collection starts when fewer blocks are free: one block to write to, one to move pages into."""


class FlashDrive(FlashState):
    """A drive in simulated time; all times are microseconds, and requests come in order of time."""

    def __init__(self, model: DriveModel) -> None:
        super().__init__(model)
        self._dies = model.dies
        self._buffer_pages = model.buffer_pages
        scale = 1.0 if model.enabled else 0.0
        self._command_us = scale * model.command_us
        self._transfer_us = scale * model.transfer_us
        self._variation = model.variation if scale else None
        self._page_factors = [1.0] if self._variation is None else self._variation.of_pages(model.serial)
        self._set_pace(scale)
        self._is_disturbed = model.enabled and any((model.throttle, model.housekeeping, model.disturb))
        self.before_command: Callable[[float], None] | None = None
        """Called with the time of each command of a drive with effects, before it warms the drive."""

    def submit(self, now_us: float, operation: str, offset: int, length: int) -> float:
        """Return when the drive acknowledges a `read`, `write`, `trim` or `flush` of bytes; never before `now_us`.

        Raises ValueError for another operation, or for a range that is not within the drive.
        """
        if offset < 0 or length < (operation != "flush") or offset + length > self.model.capacity_bytes:
            raise ValueError(f"{operation} of {length} bytes at {offset} is beyond the end of the drive")
        if self._variation is not None and now_us >= self._pace_until_us:
            self._next_pace(self._variation, now_us)
        if now_us - self._active_until > self.model.idle_after_us:
            self.advance(now_us)
        start = self._controller_free
        if start < now_us:
            start = now_us
        if self._is_disturbed:
            start = self._disturbed(start, length)
        start += self._command_us
        self._controller_free = start
        if operation == "read":
            done = self._read(start, offset, length)
        elif operation == "write":
            done = self._write(start, offset, length)
        elif operation == "trim":
            self._trim(offset, length)
            done = start
        elif operation == "flush":
            done = max(start, *self._buffer_freed)
        else:
            raise ValueError(f"unknown operation '{operation}'")
        if done > self._active_until:
            self._active_until = done
        return done

    def _next_pace(self, variation: Variation, now_us: float) -> None:
        """Set the pace of the present interval, which starts at a multiple of its length: also after a restart."""
        length_us = 1e6 * variation.wander_s / _PACES
        begin_us = now_us // length_us * length_us
        self._pace_until_us = begin_us + length_us
        self._set_pace(variation.pace(self.model.serial, self._purged_at_us, begin_us))

    def _set_pace(self, factor: float) -> None:
        """Set all times of the flash to those of the model, times `factor`."""
        model = self.model
        self._read_us = [factor * model.read_us * of_page for of_page in self._page_factors]
        self._program_us = factor * model.program_us
        self._slc_program_us = factor * model.slc_program_us
        self._copy_us = factor * model.copy_us
        self._erase_us = factor * model.erase_us
        self._suspend_us = self._program_us or math.inf

    def _disturbed(self, start: float, length: int) -> float:
        """Return the start of a command after effects delay or stretch it; from there it takes its usual time."""
        housekeeping, disturb = self.model.housekeeping, self.model.disturb
        if housekeeping is not None:
            start = housekeeping.free_from(start)
        if self.before_command is not None:
            self.before_command(start)
        stretched_us = self._command_us
        if self._heat is not None:
            stretched_us *= self._heat.command(start, length)
        if disturb is not None:
            stretched_us /= 1 - disturb.stolen_pct_at(start) / 100
        return start + stretched_us - self._command_us

    def told(self, at_us: float) -> dict[str, float]:
        """Return telemetry of drive and host at a time after the last command; empty without reporting effects."""
        effects = (self._heat, self.model.disturb) if self._is_disturbed else ()
        return {field: value for effect in effects if effect is not None for field, value in effect.told(at_us).items()}

    def advance(self, now_us: float) -> None:
        """Do the idle work until `now_us`: move the SLC cache into the main area and erase it.

        `submit` calls this method. A server in real time should also call it regularly while it is idle. Otherwise the
        first request after a long pause waits for all of this computation.
        """
        begin = self._active_until + self.model.idle_after_us
        if now_us <= begin:
            return
        while self._slc_used and min(self._die_free) < now_us:
            self._fold(begin)
        writable = self._slc_pages - self._slc_used
        if writable > self._slc_writable:
            self._lifetime["erases"] += (writable - self._slc_writable) // self._block_pages
            self._slc_writable = writable

    def purge(self, now_us: float) -> None:
        """Return to the never-written state; the lifetime counters continue."""
        self._lifetime["erases"] += self.model.blocks - len(self._free)
        self._forget(now_us)

    @property
    def active_until_us(self) -> float:
        """Time when the drive acknowledges the last request so far."""
        return self._active_until

    def counters(self) -> dict[str, int]:
        """Return lifetime counters of host I/O and of flash work, and the number of pages mapped now."""
        pages = self._lifetime["nand_write_pages"]
        return {
            "host_write_bytes": self._lifetime["host_write_bytes"],
            "host_read_bytes": self._lifetime["host_read_bytes"],
            "nand_write_bytes": pages * PAGE_BYTES,
            "erases": self._lifetime["erases"],
            "trimmed_bytes": self._lifetime["trimmed_bytes"],
            "mapped_pages": self._mapped,
        }

    def _read(self, start: float, offset: int, length: int) -> float:
        self._lifetime["host_read_bytes"] += length
        page = offset // PAGE_BYTES
        last = (offset + length - 1) // PAGE_BYTES
        transfer = self._transfer_us
        bus = self._bus_free
        if bus < start:
            bus = start
        done = start
        while page <= last:
            bus += transfer
            place = self._place[page]
            if place != NONE:
                ready = self._read_page(place, start) + transfer
                if ready > done:
                    done = ready
            page += 1
        self._bus_free = bus
        return bus if bus > done else done

    def _read_page(self, place: int, start: float) -> float:
        """Read a page: wait for the current page operation of its die, then go before the queued operations."""
        die = place % self._dies
        if self._die_read_free[die] > start:
            start = self._die_read_free[die]
        queued_until = self._die_free[die]
        read_us = self._read_us[place % len(self._page_factors)]
        if queued_until > start:
            start += (queued_until - start) % self._suspend_us
            self._die_free[die] = queued_until + read_us
        else:
            self._die_free[die] = start + read_us
        start += read_us
        self._die_read_free[die] = start
        return start

    def _write(self, start: float, offset: int, length: int) -> float:
        self._lifetime["host_write_bytes"] += length
        end = offset + length
        page = offset // PAGE_BYTES
        first_whole = -(-offset // PAGE_BYTES)
        end_whole = end // PAGE_BYTES
        last = (end - 1) // PAGE_BYTES
        bus = self._bus_free
        if bus < start:
            bus = start
        done = start
        while page <= last:
            bus += self._transfer_us
            at = bus
            if not first_whole <= page < end_whole and self._place[page] != NONE:
                read = self._read_page(self._place[page], start) + self._transfer_us
                if read > at:
                    at = read
            admitted = self._write_page(page, at)
            if admitted > done:
                done = admitted
            page += 1
        self._bus_free = bus
        return done

    def _write_page(self, page: int, at: float) -> float:
        """Return when the buffer accepts the page: after the page one buffer length before it is programmed."""
        slot = self._buffer_slot
        freed = self._buffer_freed
        if freed[slot] > at:
            at = freed[slot]
        self._invalidate(page)
        self._mapped += 1
        self._lifetime["nand_write_pages"] += 1
        if self._slc_writable:
            place = (self._slc_oldest + self._slc_used) % self._slc_pages
            self._slc_owner[place] = page
            self._slc_used += 1
            self._slc_writable -= 1
            place += self._pages
            program_us = self._slc_program_us
        else:
            if self._slc_used:
                self._fold(at)
            if self._host_next == self._host_end:
                self._open_host_block(at)
            place = self._host_next
            self._host_next += 1
            self._owner[place] = page
            self._score[place // self._block_pages] += 1
            program_us = self._program_us
        self._place[page] = place
        die = place % self._dies
        begin = self._die_free[die]
        if begin < at:
            begin = at
        self._die_free[die] = freed[slot] = begin + program_us
        self._buffer_slot = slot + 1 if slot + 1 < self._buffer_pages else 0
        return at

    def _trim(self, offset: int, length: int) -> None:
        """Unmap the pages that are wholly within the range; partial pages stay mapped."""
        first = -(-offset // PAGE_BYTES)
        end = (offset + length) // PAGE_BYTES
        for page in range(first, end):
            self._invalidate(page)
            self._place[page] = NONE
        self._lifetime["trimmed_bytes"] += max(end - first, 0) * PAGE_BYTES

    def _open_host_block(self, at: float) -> None:
        if self._host_end:
            self._score[self._host_end // self._block_pages - 1] -= OPEN
            self._host_next = self._host_end = 0
        while len(self._free) < _FREE_BLOCKS:
            self._collect(at)
        self._host_next = self._free.popleft() * self._block_pages
        self._host_end = self._host_next + self._block_pages

    def _open_move_block(self) -> None:
        if self._move_end:
            self._score[self._move_end // self._block_pages - 1] -= OPEN
        self._move_next = self._free.popleft() * self._block_pages
        self._move_end = self._move_next + self._block_pages

    def _collect(self, at: float) -> None:
        """Move the valid pages out of the block with the fewest, and erase the block."""
        valid = min(self._score)
        if valid >= self._block_pages:
            raise AssertionError("garbage collection finds no block that would free space")
        victim = self._score.index(valid)
        first = victim * self._block_pages
        end = first + self._block_pages
        pages = [page for page in self._owner[first:end] if page >= 0]
        moved = 0
        while moved < valid:
            if self._move_next == self._move_end:
                self._open_move_block()
            place = self._move_next
            chunk = pages[moved : moved + self._move_end - place]
            self._owner[place : place + len(chunk)] = chunk
            self._score[place // self._block_pages] += len(chunk)
            moved += len(chunk)
            for page in chunk:
                self._place[page] = place
                place += 1
            self._move_next = place
        self._owner[first:end] = [NONE] * self._block_pages
        self._score[victim] = OPEN
        self._free.append(victim)
        self._lifetime["nand_write_pages"] += valid
        self._lifetime["erases"] += 1
        busy_us = valid * self._copy_us / self._dies + self._erase_us
        self._die_free = [(free if free > at else at) + busy_us for free in self._die_free]

    def _fold(self, at: float) -> None:
        """Move the oldest page of the SLC cache into the main area, unless it was overwritten since."""
        slot = self._slc_oldest
        page = self._slc_owner[slot]
        if page != NONE:
            if self._move_next == self._move_end:
                while len(self._free) < _FREE_BLOCKS:
                    self._collect(at)
                if self._move_next == self._move_end:
                    self._open_move_block()
            place = self._move_next
            self._move_next += 1
            self._owner[place] = page
            self._score[place // self._block_pages] += 1
            self._place[page] = place
            self._slc_owner[slot] = NONE
            self._lifetime["nand_write_pages"] += 1
            die = place % self._dies
            self._die_free[die] = max(self._die_free[die], at) + self._copy_us
        self._slc_oldest = (slot + 1) % self._slc_pages
        self._slc_used -= 1
